# frozen_string_literal: true

module Fairlead
  # Several servers in one program, each with its addresses, its application and its options, that start and stop together:
  # an API and an administration interface, or one application for HTTP and another one for a Unix socket.
  #
  #   group = Fairlead::Group.new(logger: logger)
  #   group.add(api, bind: ["tcp://127.0.0.1:8000", "tcp://[::1]:8000"], threads: 8)
  #   group.add(admin, bind: "unix:///run/admin.sock", threads: 1)
  #   group.run { puts "listening on #{group.addresses.join(", ")}" }
  class Group
    LOGS = %i[log logger].freeze
    private_constant :LOGS

    # @return [Array<Server>] in the order in which they were added
    attr_reader :servers

    # @param options [Hash{Symbol => Object}] options of Server.new for all servers; a server's own options win
    def initialize(**options)
      @options = options
      @servers = []
    end

    # Adds a server. It takes part from the next start on.
    #
    # @param app [#call] a Rack application
    # @param options [Hash{Symbol => Object}] as for Server.new
    # @return [Server]
    # @raise [ConfigurationError] if an option is wrong, or has no meaning here
    def add(app, **options)
      server = Server.new(app, **shared_options(options), **options)
      @servers << server
      server
    end

    # Starts all servers, and returns. First all of them listen, then all of them serve; so if an address cannot be opened, no
    # application has been called. If this method or the block raises, none of the servers runs.
    #
    # @yieldparam group [Group] itself, once all servers serve
    # @return [Group] itself
    # @raise [BindError] if a server cannot listen
    # @raise [Error] if one of them serves already; that one goes on
    def start
      begun = []
      servers.each { |server| begun << server.listen }
      begun.each(&:start)
      yield self if block_given?
      started = self
    ensure
      begun&.each { |server| server.stop(0) } unless started
    end

    # Serves until another thread calls {#stop}.
    #
    # @yieldparam group [Group] itself, once all servers serve
    # @return [Group] itself
    # @raise [BindError] if a server cannot listen
    def run(&block)
      start(&block)
      wait
    end

    # Waits until all servers have been stopped.
    #
    # @return [Group] itself
    def wait
      servers.each(&:wait)
      self
    end

    # Stops all servers at the same time; see {Server#stop}. In a request of one of them, it does not wait.
    #
    # @param seconds [Numeric, nil, :own] how long requests may take; :own is the option shutdown_timeout of each server
    # @param wait [Boolean] false to return nil at once
    # @return [Boolean, nil] false if requests were aborted, nil if it does not wait
    def stop(seconds = :own, wait: true)
      seconds = seconds == :own ? [] : [seconds]
      wait &&= servers.none?(&:inside?)
      servers.each { |server| server.stop(*seconds, wait: false) }
      servers.map { |server| server.stop(*seconds) }.all? if wait
    end

    # Opens the access logs of all servers again; see {Server#reopen_logs}.
    #
    # @return [Boolean] false if none is a file
    def reopen_logs = servers.map(&:reopen_logs).any?

    # Reads the certificates of all servers again; see {Server#reload_certificates}.
    #
    # @return [Boolean] whether all servers could use theirs
    def reload_certificates = servers.map(&:reload_certificates).all?

    # @return [Boolean] whether all servers listen
    def running? = servers.any? && servers.all?(&:running?)

    # @return [Array<Integer>] the ports of all servers; Unix sockets have none
    def ports = servers.flat_map(&:ports)
    alias connected_ports ports

    # @return [Array<String>] the addresses on which they listen
    def addresses = servers.flat_map(&:addresses)

    private

    # Both names of a log are the same option.
    def shared_options(own) = own.keys.intersect?(LOGS) ? @options.except(*LOGS) : @options
  end
end
