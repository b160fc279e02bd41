# frozen_string_literal: true

require "socket"

module Bench
  # A server that was started for a measurement: waits for its first response, stops it by its process id and reaps it.
  class Running
    START_DEADLINE = 180 # 10,000 certificates take nginx 12 s of CPU time
    STOP_DEADLINE = 10

    # Variables of the user's shell must not change a server's behaviour.
    CLEARED = %w[
      PORT PIDFILE WEB_CONCURRENCY RUBYOPT BUNDLE_GEMFILE FAIRLEAD_MIN_THREADS FAIRLEAD_MAX_THREADS
      RAILS_MIN_THREADS RAILS_MAX_THREADS MIN_THREADS MAX_THREADS PUMA_MIN_THREADS PUMA_MAX_THREADS
    ].freeze
    ENVIRONMENT = CLEARED.to_h { |name| [name, nil] }.merge("APP_ENV" => "production", "RACK_ENV" => "production", "RAILS_ENV" => "production").freeze

    attr_reader :server, :pid, :port, :group, :site

    # Starts `server` in `site`; yields the Running once every process is there and a request got a response.
    def self.start(server, site, shape, extra: [])
      running = new(server, site, shape, extra)
      running.wait_until_ready
      yield running
    ensure
      running&.stop
    end

    # Starts another server and stops it after its response: returns the seconds from before spawning to the response.
    def self.time(server, site, shape)
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      running = new(server, site, shape, [])
      running.wait_for_answer(every: 0.0005)
      Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
    ensure
      running&.stop
    end

    def initialize(server, site, shape, extra)
      @server = server
      @site = site
      @shape = shape
      @extra = extra
      IdleConnections.allow_descriptors(2 * shape.connections) # a connection may need a file
      @port = Addrinfo.tcp("127.0.0.1", 0).bind { |socket| socket.local_address.ip_port }
      @pid = Process.spawn(ENVIRONMENT, *server.command(site, @port, shape), *extra,
                           chdir: site.directory, in: File::NULL, %i[out err] => [site.log, "w"], pgroup: true,
                           rlimit_nofile: Process.getrlimit(:NOFILE).last)
      @group = ProcessGroup.new(@pid)
    end

    def url(path = "/")
      "#{tls ? "https" : "http"}://127.0.0.1:#{@port}#{path}"
    end

    # Its Tls, or nil.
    def tls
      @site.tls
    end

    # True if requests use HTTP/2.
    def http2?
      @site.http2
    end

    # Starts another server, the same in the same site and shape, or in another shape or with more arguments, and yields it.
    def with_another(shape = @shape, arguments: [], &block)
      Running.start(@server, @site, shape, extra: @extra + arguments, &block)
    end

    # Times another start of the same server in the same site and shape (Running.time).
    def time_another
      Running.time(@server, @site, @shape)
    end

    def wait_until_ready
      wait_until(0.02) { answers? && whole? }
    end

    def wait_for_answer(every:)
      wait_until(every) { answers? }
    end

    def signal(name)
      Process.kill(name, @pid)
    rescue Errno::ESRCH
      nil
    end

    # Waits until the server ends by itself; true if it did in time.
    def wait_for_end(seconds)
      deadline = now + seconds
      sleep 0.02 until ended? || now > deadline
      ended?
    end

    def stop
      signal(:TERM) unless ended?
      wait_for_end(STOP_DEADLINE)
      Process.kill(:KILL, -@pid)
    rescue Errno::ESRCH
      nil
    ensure
      Process.wait(@pid) unless ended?
    end

    def ended?
      @ended ||= !Process.wait(@pid, Process::WNOHANG).nil?
    end

    # True if all expected processes are there.
    def whole?
      !ended? && (!ProcessGroup.readable? || @group.pids.size >= @server.processes(@shape))
    end

    private

    def wait_until(interval)
      deadline = now + START_DEADLINE
      until yield
        failed("ended while starting") if ended?
        failed("did not respond within #{START_DEADLINE} s") if now > deadline
        sleep interval
      end
    end

    def answers?
      return Load::Fairlead.new.answers_http2?(url) if http2?

      Socket.tcp("127.0.0.1", @port, connect_timeout: 1) do |socket|
        stream = tls ? Tls.over(socket) : socket
        stream.write("GET / HTTP/1.1\r\nhost: 127.0.0.1:#{@port}\r\nconnection: close\r\n\r\n")
        socket.wait_readable(5) && stream.readpartial(16) =~ %r{\AHTTP/1\.[01] 2}
      end
    rescue SystemCallError, EOFError, OpenSSL::SSL::SSLError
      false
    end

    def failed(how)
      raise Error, "#{@server.name} #{how}:\n#{@site.log_tail}"
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
