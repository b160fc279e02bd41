# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

# A server in a program is a guest: the state of the process is the same before, during and after its life.
class GuestTest < Minitest::Test
  include Fairlead::Test::Folders

  # Prints the changes. Watches `at_exit` from before Fairlead is loaded.
  SCRIPT = <<~'RUBY'
    module Watched
      CALLS = []
      def at_exit(&block) = (CALLS << caller.grep_v(/rubygems/).first) && super
    end
    Kernel.prepend(Watched)
    require "logger"
    require "net/http"
    require "socket"

    def process
      # Without the signals of the C library, from 32 on.
      signals = File.read("/proc/self/status").scan(/^Sig(?:Blk|Ign|Cgt):\s+(\h+)/).map { |mask, | mask.hex & 0x7fffffff }
      { signals: signals, folder: Dir.pwd, env: ENV.to_h, umask: File.umask,
        limits: Process.getrlimit(:NOFILE), title: File.read("/proc/self/comm"), arguments: File.read("/proc/self/cmdline"), name: $0, sync: [$stdout.sync, $stderr.sync], streams: [$stdout, $stderr].map(&:object_id),
        raises: [Thread.abort_on_exception, Thread.report_on_exception],
        encodings: [Encoding.default_external, Encoding.default_internal], exits: Watched::CALLS.dup }
    end

    ENV.update("LISTEN_FDS" => "1", "LISTEN_PID" => Process.pid.to_s, "NOTIFY_SOCKET" => "@nowhere", "PORT" => "1",
               "WEB_CONCURRENCY" => "2", "FAIRLEAD_SPAWNER" => "0")
    before = process
    require "fairlead"
    servers = Array.new(2) { Fairlead::Server.new(->(_) { [200, {}, ["hello"]] }, bind: "tcp://127.0.0.1:0", log: Logger.new(nil)).start }
    bodies = servers.map { |server| Net::HTTP.get(URI("http://127.0.0.1:#{server.port}/")) }
    during = process
    servers.each(&:stop)
    after = process
    [during, after].each { |now| before.each { |name, value| puts "#{name}: #{value} -> #{now[name]}" unless value == now[name] } }
    puts "children" if (Process.wait rescue nil)
    puts bodies
  RUBY

  def test_nothing_of_the_process_changes
    in_folder("config/fairlead.rb" => "workers 2", "config/puma.rb" => "raise") do
      output, status = Open3.capture2e(RbConfig.ruby, "-w", "-I", File.join(ROOT, "lib"), "-e", SCRIPT)

      assert_equal "hello\nhello\n", output
      assert_predicate status, :success?
    end
  end
end
