# frozen_string_literal: true

module Bench
  # A server program: its availability, its version and its command line. Each has one subclass in one file of
  # `bench/servers`; defining it registers it.
  class Server
    @all = []

    class << self
      def inherited(subclass)
        super
        Server.register(subclass)
      end

      def register(subclass)
        @all << subclass
      end

      def all
        @all.map(&:new).sort_by { |server| [server.rank, server.name] }
      end

      def named(name)
        all.find { |server| server.name == name } || raise(Error, "no server #{name}; there are #{all.map(&:name).join(", ")}")
      end
    end

    def name
      self.class.name.split("::").last.downcase
    end

    # Name of its gem; nil if it is not a gem.
    def gem_name
      name
    end

    # Position in tables: Fairlead first, then its peers, then the ceiling.
    def rank
      1
    end

    # Why it cannot be measured here, or nil.
    def missing
      "gem #{gem_name} is not installed" unless specification
    end

    def version
      specification.version.to_s
    end

    # True if this server supports this shape and scenario at all.
    def runs?(_shape, _scenario)
      true
    end

    # Its interface for WebSockets and event streams (Dialect), or nil.
    def dialect
      nil
    end

    # True if it is measured with requests, and not only through its dialect.
    def takes_requests?
      true
    end

    # Source of its response: `:app`, from the app; `:public`, from the folder `public` of the site, with no app; or
    # another way that a scenario knows. A server with several ways has a Server for each.
    def way
      :app
    end

    # True if it is measured with TLS in scenarios with TLS.
    def tls?
      false
    end

    # True if it is measured without TLS beside servers with TLS, for comparison.
    def plain?
      false
    end

    # True if it is measured over HTTP/2 in scenarios with HTTP/2.
    def http2?
      false
    end

    # True if it is measured over HTTP/1.1 beside servers with HTTP/2, for comparison.
    def http1?
      false
    end

    # The moment from which a connection counts as idle: after a `:response`, or after the `:handshake` if the server
    # cannot keep a thousand after a response, or is slow at it.
    def idle_after
      :response
    end

    # Surrounds the load, for a server that needs a special state during the measurement.
    def under(_running, _shape)
      yield
    end

    # A remark about the shape for the reader, or nil.
    def note(_shape)
      nil
    end

    # Number of processes after the start.
    def processes(shape)
      shape.single? ? 1 : shape.workers + 1
    end

    # The command line as an Array. `site` is the app's folder (Site), `port` a free port on 127.0.0.1.
    def command(site, port, shape)
      raise NotImplementedError
    end

    private

    def specification
      Gem::Specification.find_by_name(gem_name)
    rescue Gem::MissingSpecError
      nil
    end

    # This Ruby running an executable of the server's gem; distributions install it separately from the gem.
    def executable(name = self.name)
      directories = [specification.bin_dir, File.join(specification.full_gem_path, "exe"), Gem.bindir, *ENV["PATH"].split(":")]
      path = directories.map { |directory| File.join(directory, name) }.find { |file| File.exist?(file) }
      [RbConfig.ruby, path || raise(Error, "gem #{gem_name} has no executable #{name}")]
    end
  end
end
