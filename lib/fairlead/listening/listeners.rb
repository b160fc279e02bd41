# frozen_string_literal: true

module Fairlead
  # The listeners of a server. Either all of them are opened, or none.
  class Listeners
    include Enumerable

    class << self
      # Opens all addresses, or takes listeners of +inherited+ instead. +activated+: the sockets of systemd that are taken
      # without being named: :none, :all, or :only, which opens nothing else if there are any. Yields unused inherited listeners
      # after closing them. Raises BindError for the first address that cannot be opened.
      def open(addresses, backlog:, inherited: Inherited.new, activated: :none, &unused)
        listeners = []
        addresses = [] if activated == :only && inherited.activated?
        addresses.each { |address| listeners.concat(at(Binding.parse(address), backlog, inherited, listeners)) }
        listeners.concat(inherited.take_activated) unless activated == :none
        new(listeners)
      rescue BindError
        new(listeners).remove
        raise
      ensure
        inherited.close.each(&unused)
      end

      # The BindError for a Binding at which this server already listens, for the address +other+.
      def taken(binding, other)
        BindError.new(binding.address, "this server listens there already, for #{other}; give one of the two (-p is an address too)")
      end

      private

      def at(binding, backlog, inherited, earlier)
        taken = inherited.take_for(binding)
        binding.claim(taken.empty? ? binding.open(backlog: backlog) : taken)
      rescue BindError => e
        other = earlier.find { |listener| listener.port && listener.port == binding.port } if e.cause.is_a?(Errno::EADDRINUSE)
        raise other ? taken(binding, other.known_as) : e
      end
    end

    def initialize(listeners)
      @listeners = listeners
    end

    def each(&block) = @listeners.each(&block)

    def ports = filter_map(&:port)

    # The listeners for the engine: [[descriptor, address, Native::Tls or nil, version of the PROXY protocol or nil], …].
    # +proxy_protocol+: for listeners with an address that does not say it.
    def to_engine(proxy_protocol: nil)
      map do |listener|
        version = listener.proxy_protocol || proxy_protocol
        [listener.fileno, listener.address, listener.tls&.native, (version unless version == "none")]
      end
    end

    # The inodes of the listeners that end with this process: see Listener#ending.
    def ending = filter_map(&:ending)

    # Closes the sockets in this process.
    def close = each(&:close)

    # Stops listening in all processes, and deletes the files of Unix sockets.
    def remove = each(&:remove)
  end
end
