# frozen_string_literal: true

require "fairlead"
require_relative "apps"

# Starts and stops the HTTP servers of the program, in place of a WEBrick::HTTPServer and a thread for each listener. It uses
# the settings and the log; signals are the program's business.
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

  # Starts all listeners and returns; calls the block once the last one serves. If one cannot start, for example because its
  # port is taken, raises Fairlead::BindError, and none of them runs.
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

  # Ports of the listeners, in order.
  def ports = @group.ports

  private

  # Adds a listener with its own application at each of the addresses. The host * means every interface.
  def add(app, port)
    return unless port

    addresses = @settings["hosts"].map { |host| "tcp://#{host.include?(":") ? "[#{host}]" : host}:#{port}" }
    @group.add(RequestLog.new(app, @logger), bind: addresses)
  end
end
