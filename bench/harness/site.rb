# frozen_string_literal: true

require "fileutils"
require "tmpdir"

module Bench
  # The directory a server is started in: config.ru (which may depend on the server), the files its scenario serves, the server's log.
  class Site
    # A larger file is a hole: it reads like any other and takes no room on the disk.
    WRITTEN = 64 << 20

    # tls: what the server is to speak (Tls), or nil. http2: whether it is asked over HTTP/2.
    attr_reader :directory, :tls, :http2

    def self.open(scenario, server = nil, shape = nil)
      Dir.mktmpdir("fairlead-bench-") { |directory| yield new(directory, scenario, server, shape) }
    end

    def initialize(directory, scenario, server, shape)
      @directory = directory
      @tls = scenario.tls(shape) if server&.tls?
      @http2 = !server.nil? && scenario.http2?(server)
      scenario.contents(server).each do |name, text|
        FileUtils.mkdir_p(File.dirname(path(name)))
        File.binwrite(path(name), text)
      end
      scenario.files.each { |name, bytes| fill(path(name), bytes) }
    end

    def path(name)
      File.join(@directory, name)
    end

    def rackup
      path("config.ru")
    end

    def log
      path("server.log")
    end

    # Writes a file the server's command line refers to and returns its path.
    def write(name, text)
      path(name).tap { |path| File.write(path, text) }
    end

    # The last lines of the server's log, for the message that says it did not start.
    def log_tail(lines = 12)
      return "" unless File.exist?(log)

      File.read(log, encoding: Encoding::BINARY).scrub.lines.last(lines).join
    end

    private

    def fill(path, bytes)
      FileUtils.mkdir_p(File.dirname(path))
      File.binwrite(path, "\0" * [bytes, WRITTEN].min)
      File.truncate(path, bytes)
    end
  end
end
