# frozen_string_literal: true

module Fairlead
  # The listeners of a server: opened together or not at all.
  class Listeners
    include Enumerable

    # Opens every binding of +uris+; raises BindError for the first that cannot be opened.
    def self.open(uris, backlog:)
      listeners = []
      uris.each { |uri| listeners.concat(Binding.parse(uri).open(backlog: backlog)) }
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

    # What the engine takes: [[descriptor, address], …].
    def to_engine = map { |listener| [listener.fileno, listener.address] }

    # Lets go of the sockets in this process.
    def close = each(&:close)

    # Stops listening for good; the files of Unix sockets go too.
    def remove = each(&:remove)
  end
end
