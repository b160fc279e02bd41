# frozen_string_literal: true

require "socket"
require "tmpdir"
require_relative "broker_process"

module Fairlead
  module Test
    # A Redis server on a Unix socket in a folder of its own, without persistence. It can be ended and started again.
    class RedisServer
      include BrokerProcess

      # Returns the reason to skip a test that needs Redis, or nil.
      def self.missing
        return "needs the gem redis" if Gem::Specification.find_all_by_name("redis").empty?

        "needs redis-server" unless BrokerProcess.installed?("redis-server")
      end

      def initialize
        @folder = Dir.mktmpdir("fairlead-redis-")
        start
      end

      def url = "unix://#{socket}"
      def socket = File.join(@folder, "socket")

      def start
        @pid = Process.spawn("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", @folder, out: File::NULL)
        wait_until("Redis") { answers? }
        self
      end

      # Sends a command and returns so many lines of the reply.
      def command(*words, lines: 1)
        UNIXSocket.open(socket) do |redis|
          redis.write("*#{words.size}\r\n", *words.map { |word| "$#{word.bytesize}\r\n#{word}\r\n" })
          Array.new(lines) { redis.gets&.chomp }
        end
      end

      # Number of channels with subscribers, of connections that subscribe to a channel, and of patterns.
      def channels = number(command("PUBSUB", "CHANNELS"))
      def subscribers(name) = number(command("PUBSUB", "NUMSUB", name, lines: 4))
      def patterns = number(command("PUBSUB", "NUMPAT"))

      # Number of connections besides the one that this command uses.
      def connections = Integer(command("INFO", "clients", lines: 3).last[/\d+/], 10) - 1

      private

      def number(lines) = Integer(lines.last[1..], 10)

      def answers?
        command("PING") == ["+PONG"]
      rescue SystemCallError
        false
      end
    end
  end
end
