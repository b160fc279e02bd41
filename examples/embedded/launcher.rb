# frozen_string_literal: true

require "fairlead"
require_relative "apps"

# Starts and stops the HTTP servers of the program: what has an object of WEBrick::HTTPServer and a thread for each listener in
# other programs. It knows the settings and the log, and nothing of signals.
class Launcher
  VERSION = "1.0"

  # +settings+: a Hash, as in settings.yml. +logger+: a Logger.
  def initialize(settings, logger, counter: Counter.new)
    @settings = settings
    @logger = logger
    @group = Fairlead::Group.new(
      logger: logger, threads: [0, settings["threads"]], environment: "production", server_header: "visitors/#{VERSION}"
    )
    add(PublicApp.new(counter), settings["http_port"])
    add(AdminApp.new(counter), settings["admin_port"])
    raise ArgumentError, "both listeners are switched off" if @group.servers.empty?
  end

  # Starts all listeners and returns; calls the block once the last one serves. Raises Fairlead::BindError if a port is taken,
  # for example; then none of them runs.
  def start
    @group.start do
      @logger.info("launched on #{@group.addresses.size} sockets")
      yield self if block_given?
    end
    self
  end

  # Finishes the requests that have arrived, for up to +seconds+. The launcher can start again.
  def stop(seconds = 10)
    @logger.warn("some requests were aborted") unless @group.stop(seconds)
  end

  # The ports of the listeners, in order.
  def ports = @group.ports

  private

  # A listener with an application of its own, at each of the addresses. The host * means every interface.
  def add(app, port)
    return unless port

    addresses = @settings["hosts"].map { |host| "tcp://#{host.include?(":") ? "[#{host}]" : host}:#{port}" }
    @group.add(RequestLog.new(app, @logger), bind: addresses)
  end
end
