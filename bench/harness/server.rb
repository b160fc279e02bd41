# frozen_string_literal: true

module Bench
  # What the harness needs to know of a server program: is it here, which version, how is it started. One subclass in one
  # file of `bench/servers` for each; defining it registers it.
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

    # The gem it comes from; nil when it is no gem.
    def gem_name
      name
    end

    # Place in tables: Fairlead first, then its peers, then the ceiling.
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

    # Whether this server can take this shape and scenario at all.
    def runs?(_shape, _scenario)
      true
    end

    # How applications on it speak over WebSockets and event streams (Dialect), or nil.
    def dialect
      nil
    end

    # Whether it is measured with requests, and not only with what its dialect is about.
    def takes_requests?
      true
    end

    # How it comes by its answer: `:app`, from the app; `:public`, from the folder `public` of the site, with no app; or by
    # another way that a scenario knows. A server that can do several is a Server for each.
    def way
      :app
    end

    # Whether it is measured with TLS where a scenario asks for that.
    def tls?
      false
    end

    # Whether it is measured without TLS beside those with it, for comparison.
    def plain?
      false
    end

    # Whether it is asked over HTTP/2 where a scenario wants that.
    def http2?
      false
    end

    # Whether it is measured over HTTP/1.1 beside those with HTTP/2, for comparison.
    def http1?
      false
    end

    # When a connection counts as idle: after a `:response`, or after the `:handshake` if the server cannot keep a thousand after a
    # response, or takes its time for it.
    def idle_after
      :response
    end

    # Surrounds the load, for a server that is to be in some state meanwhile.
    def under(_running, _shape)
      yield
    end

    # What a reader must know about how the shape was met, or nil.
    def note(_shape)
      nil
    end

    # The processes there are once it has started.
    def processes(shape)
      shape.single? ? 1 : shape.workers + 1
    end

    # The command line as an Array. `site` is where the app is (Site), `port` a free port on 127.0.0.1.
    def command(site, port, shape)
      raise NotImplementedError
    end

    private

    def specification
      Gem::Specification.find_by_name(gem_name)
    rescue Gem::MissingSpecError
      nil
    end

    # This Ruby running an executable of the server's gem; distributions keep it apart from the gem.
    def executable(name = self.name)
      directories = [specification.bin_dir, File.join(specification.full_gem_path, "exe"), Gem.bindir, *ENV["PATH"].split(":")]
      path = directories.map { |directory| File.join(directory, name) }.find { |file| File.exist?(file) }
      [RbConfig.ruby, path || raise(Error, "gem #{gem_name} has no executable #{name}")]
    end
  end
end
