# frozen_string_literal: true

require "fileutils"
require "json"
require "socket"
require "tmpdir"
require_relative "broker_process"

module Fairlead
  module Test
    # A NATS server on a free port, with JetStream in memory. It can be ended and started again on that port.
    class NATSServer
      include BrokerProcess

      # Returns the reason to skip a test that needs NATS, or nil. A checkout of the gem may be on the load path.
      def self.missing
        return "needs nats-server" unless BrokerProcess.installed?("nats-server")

        require "nats/client"
        "needs the gem nats-pure" unless defined?(::NATS::IO::VERSION) # not the stub
      rescue LoadError
        "needs the gem nats-pure"
      end

      attr_reader :url

      # +options+: further lines of the configuration.
      def initialize(options = "")
        @folder = Dir.mktmpdir("fairlead-nats-")
        @options = options
        @port = "-1" # a free one
        start
      end

      def start
        FileUtils.rm_f(Dir.glob(File.join(@folder, "*.ports")))
        File.write(configuration, <<~TEXT)
          host: 127.0.0.1
          port: #{@port}
          http_port: -1
          ports_file_dir: #{@folder.inspect}
          jetstream { store_dir: #{@folder.inspect} }
          #{@options}
        TEXT
        @pid = Process.spawn("nats-server", "-c", configuration, out: File::NULL, err: File.join(@folder, "log"))
        ports = wait_until("NATS") { ports_file }
        @url = ports.fetch("nats").first
        @monitor = ports.fetch("monitoring").first
        @port = @url[/\d+\z/]
        wait_until("JetStream") { answers? }
        self
      end

      def connections = monitor("connz").fetch("num_connections")

      private

      def configuration = File.join(@folder, "nats.conf")

      def ports_file
        path = Dir.glob(File.join(@folder, "*.ports")).first
        path && JSON.parse(File.read(path))
      rescue JSON::ParserError
        nil # not written yet
      end

      def answers?
        TCPSocket.open("127.0.0.1", Integer(@port, 10)) { |socket| socket.gets.start_with?("INFO") }
      rescue SystemCallError
        false
      end

      def monitor(name)
        TCPSocket.open("127.0.0.1", Integer(@monitor[/\d+\z/], 10)) do |socket|
          socket.write("GET /#{name} HTTP/1.0\r\n\r\n")
          JSON.parse(socket.read.split("\r\n\r\n", 2).last)
        end
      end
    end
  end
end
