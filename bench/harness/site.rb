# frozen_string_literal: true

require "fileutils"
require "tmpdir"

module Bench
  # The folder in which a server is started: config.ru (which may depend on the server), the files of the scenario, the
  # server's log.
  class Site
    # A larger file is sparse: it reads like any other and takes no room on the disk.
    WRITTEN = 64 << 20

    # tls: the server's Tls, or nil. http2: true if requests use HTTP/2.
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

    # Writes a file for the server's command line and returns its path.
    def write(name, text)
      path(name).tap { |path| File.write(path, text) }
    end

    # The last lines of the server's log, for the error that it did not start.
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
