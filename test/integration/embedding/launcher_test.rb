# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

# Fairlead::Launcher in a program: the command as an object. It handles the signals while it runs.
class LauncherTest < Minitest::Test
  include Fairlead::Test::Folders

  SCRIPT = <<~'RUBY'
    require "fairlead"
    require "logger"
    require "net/http"
    $stdout.sync = true
    trap("TERM") { $told = "my own TERM" }
    program = Process.pid
    ready = 0
    logger = Logger.new($stdout, formatter: lambda { |level, _, _, text|
      ready += 1 if text.include?(" ready in ")
      "#{level} #{text.sub(/:\d+\z/, "")}\n"
    })
    app = ->(_) { [200, {}, ["in the program: #{Process.pid == program}\n"]] }
    flags = Fairlead::Configuration::Layer.from({ bind: "tcp://127.0.0.1:0", workers: Integer(ARGV[0]) }, origin: "the program")
    1.upto(2) do |number|
      launcher = Fairlead::Launcher.new(Fairlead::Configuration.load(flags), app: app, log: logger)
      running = Thread.new { launcher.run }
      sleep 0.01 until launcher.connected_ports.any?
      puts Net::HTTP.get(URI("http://127.0.0.1:#{launcher.connected_ports.first}/"))
      sleep 0.01 until ready == number || ARGV[0] != "0" # with workers, another process prints it
      Thread.new { launcher.stop }.join
      puts running.value
    end
    Process.kill(:TERM, Process.pid)
    sleep 0.01 until $told
    puts $told, Thread.list.filter_map(&:name).grep(/fairlead/).size
  RUBY

  def test_it_starts_and_stops_from_other_threads_and_gives_the_signals_back
    in_folder do
      lines = run_script(0)

      assert_equal ["in the program: true", "0"] * 2 + ["my own TERM", "0"], lines.grep_v(/\A(?:INFO|WARN)/)
      assert_equal 2, lines.grep(%r{\AINFO listening on http://127\.0\.0\.1\z}).size
      assert_empty lines.grep(/\AWARN/)
    end
  end

  def test_the_same_with_workers
    in_folder do
      assert_equal ["in the program: false", "0"] * 2 + ["my own TERM", "0"], run_script(1).grep_v(/\A(?:INFO|WARN)/)
    end
  end

  # The spawner is forked from the program, which has loaded the application.
  def test_threads_of_the_application_that_workers_lack_are_logged
    in_folder do
      lines = run_script(1, "Thread.new { sleep }.name = 'reporter'\n#{SCRIPT}").grep(/not in the workers/)

      assert_equal 2, lines.size
      assert_match(/\AWARN not in the workers, because a fork copies no threads: thread @reporter program\.rb:1; start them/, lines.first)
    end
  end

  private

  # Lines that the program prints.
  def run_script(workers, script = SCRIPT)
    File.write("program.rb", script)
    output, status = Open3.capture2e(RbConfig.ruby, "-w", "-I", File.join(ROOT, "lib"), "program.rb", workers.to_s)
    assert_predicate status, :success?, output
    output.lines(chomp: true)
  end
end
