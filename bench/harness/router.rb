# frozen_string_literal: true

require "open3"

module Bench
  # The router in front of several servers (bench/router): started for a measurement, and stopped by its process id.
  class Router
    STOP_DEADLINE = 5

    # Yields a router that forwards requests to the ports, over HTTP/2 or HTTP/1.1, with kept connections or new ones.
    def self.start(ports, http2:, keep_alive:)
      router = new(ports, http2, keep_alive)
      yield router
    ensure
      router&.stop
    end

    def initialize(ports, http2, keep_alive)
      origins = ports.map { |port| "http://127.0.0.1:#{port}" }
      @input, output, @process = Open3.popen2(Binaries.router, "-http2=#{http2}", "-keep-alive=#{keep_alive}", *origins)
      # The router prints its port.
      @address = output.gets&.strip or raise(Error, "the router did not start")
      output.close
    end

    def url(path = "/")
      "http://#{@address}#{path}"
    end

    # The router ends with its standard input.
    def stop
      @input.close
      Process.kill(:KILL, @process.pid) unless @process.join(STOP_DEADLINE)
    end
  end
end
