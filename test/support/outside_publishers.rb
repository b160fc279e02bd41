# frozen_string_literal: true

require "logger"
require "open3"
require "rbconfig"
require "socket"
require "stringio"
require_relative "another_version"

module Fairlead
  module Test
    # For tests of processes beside a server that publish through its publish socket.
    module OutsidePublishers
      include AnotherVersion

      SOCKET = "tmp/sockets/fairlead.sock"

      CABLE = { "config/cable.yml" => "production:\n  adapter: fairlead\n", "tmp/.keep" => "" }.freeze

      # Each process that serves writes what it hears into a file. A long message is written as its length.
      HEARING = <<~'RUBY'
        VERSION = File.read("version").strip
        raise "this code is broken" if VERSION == "broken"

        Fairlead.subscribe("news") do |_, text|
          File.write("heard", "#{Process.pid} #{text.bytesize > 99 ? text.bytesize : text}\n", mode: "a")
        end
        run ->(_env) { [200, {}, ["#{VERSION} #{Process.pid}"]] }
      RUBY

      # Starts a server with a publish socket. The block, if there is one, starts it.
      def hearing(workers, *arguments, files: {}, **options, &start)
        prepared(workers, *arguments, app: HEARING, files: CABLE.merge(files), **options, &start || :start)
      end

      # Returns a publisher in this process, and its log.
      def publisher(server, path = server.path(SOCKET))
        log = StringIO.new
        running = PubSub::RunningServer.new(path, logger: Logger.new(log, formatter: ->(level, _, _, text) { "#{level} #{text}\n" }))
        (@publishers ||= []) << running
        [running, log]
      end

      # Runs code in another process, with +server+ as the RunningServer; returns its output.
      def beside(server, code)
        code = "server = Fairlead::PubSub::RunningServer.of(ARGV.first)\n#{code}"
        output, status = Open3.capture2e({ "RUBYOPT" => nil, "RUBYLIB" => File.join(ServerProcess::ROOT, "lib") },
                                         RbConfig.ruby, "-rfairlead", "-e", code, server.directory)
        assert_predicate status, :success?, output
        output
      end

      # Returns what was heard: process id => texts.
      def heard(server)
        lines = File.exist?(server.path("heard")) ? File.readlines(server.path("heard"), chomp: true) : []
        lines.map { |line| line.split(" ", 2) }.group_by(&:first).transform_values { |all| all.map(&:last) }
      end

      # Waits until that many processes have heard that text last.
      def wait_for_hearing(server, text, processes: nil)
        wait_until("#{text} in all processes", seconds: PATIENCE) do
          all = heard(server).values.count { |texts| texts.last == text.to_s }
          all >= (processes || 1)
        end
      end

      # Publishes a number each millisecond while the block runs. Returns the results, by number.
      def publishing(publisher)
        results = []
        ending = false
        thread = Thread.new { results << publisher.publish("news", results.size.to_s) && sleep(0.001) until ending }
        wait_until("the first messages") { results.size > 10 }
        yield
        ending = true
        thread.join
        results
      end

      # A connection to the publish socket.
      def raw(server) = (@raw ||= []).push(UNIXSocket.new(server.path(SOCKET))).last

      # A request in the form of the protocol.
      def request(channel, message, flags: 0)
        [5 + channel.bytesize + message.bytesize, flags, channel.bytesize].pack("NCN") + channel + message
      end

      def after_teardown
        super
      ensure
        [*@publishers, *@raw].each(&:close)
      end
    end
  end
end
