# frozen_string_literal: true

module Fairlead
  # The listeners of a server. Either all of them are opened, or none.
  class Listeners
    include Enumerable

    # Opens all addresses. Raises BindError for the first that cannot be opened.
    def self.open(addresses, backlog:)
      listeners = []
      addresses.each { |address| listeners.concat(Binding.parse(address).open(backlog: backlog)) }
      new(listeners)
    rescue BindError
      new(listeners).remove
      raise
    end

    def initialize(listeners)
      @listeners = listeners
    end

    def each(&block) = @listeners.each(&block)

    def ports = filter_map(&:port)

    # The listeners for the engine: [[descriptor, address], …].
    def to_engine = map { |listener| [listener.fileno, listener.address] }

    # Closes the sockets in this process.
    def close = each(&:close)

    # Stops listening in all processes, and deletes the files of Unix sockets.
    def remove = each(&:remove)
  end
end
