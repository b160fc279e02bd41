# frozen_string_literal: true

require "test_helper"
require "support/supervision"

# Signals while a restart starts the new program, and at the very end.
class SignalsDuringRestartsTest < Minitest::Test
  include Fairlead::Test::Supervision

  # Loaded before every program of the server, except checks: with the file "hold" it waits for the file "go".
  HOLD = <<~'RUBY'
    if File.exist?("hold") && !ARGV.include?("--check") && $PROGRAM_NAME.end_with?("fairlead")
      File.write("held", Process.pid.to_s)
      sleep 0.01 until File.exist?("go")
    end
  RUBY

  FILES = %(pid_file "server.pid"\nstate_path "server.state"\ncontrol_url "unix://control.sock"\nbind "unix://app.sock"\n)

  SHAPES.each do |name, workers|
    define_method(:"test_hup_while_the_new_program_starts_reopens_the_logs_#{name}") do
      server = holding(workers, "--access-log", "access.log")
      File.rename(server.path("access.log"), server.path("access.log.1"))
      server.signal(:HUP)
      server.write("go", "")

      wait_for_version(server, "2")
      wait_for_line(server, /reopened/)
      wait_until("a new access log") { File.exist?(server.path("access.log")) }
      assert_ends(server)
    end

    define_method(:"test_hup_while_the_new_program_starts_ends_a_server_without_logs_in_order_#{name}") do
      server = holding(workers, config: FILES)
      server.signal(:HUP)
      server.write("go", "")

      wait_until("the end", seconds: PATIENCE) { server.exited? }
      assert_left_in_order(server)
    end

    %i[TERM INT].each do |signal|
      define_method(:"test_#{signal}_while_the_new_program_starts_ends_the_server_and_removes_its_files_#{name}") do
        server = holding(workers, config: FILES)
        server.signal(signal)
        wait_until("the end", seconds: PROMPT) { server.exited? }

        assert_left_in_order(server)
      end
    end

    define_method(:"test_usr2_while_the_new_program_starts_is_not_lost_#{name}") do
      server = holding(workers)
      server.signal(:USR2)
      server.write("go", "")
      wait_for_version(server, "2")
      server.write("version", "3")

      again = /hot restart: .*(?:new code|place)/
      wait_until("a second restart", seconds: PATIENCE) { reply(server)&.first == "3" || server.stdout.scan(again).size >= 2 }
    end

    # As with `nohup`: HUP stays ignored, for any number of restarts.
    define_method(:"test_an_ignored_hup_stays_ignored_after_two_hot_restarts_#{name}") do
      previous = trap("HUP", "IGNORE")
      server = supervised(workers)
      trap("HUP", previous)
      %w[2 3].each { |version| assert_restarts(server, version) }
      wait_for_serving(server, workers)
      server.signal(:HUP)
      pass_time(1)

      assert_predicate server, :running?
      assert_equal "3", reply(server)&.first
    end

    %i[INT HUP].each do |signal|
      define_method(:"test_#{signal}_again_and_again_until_the_end_leaves_no_file_#{name}") do
        5.times do
          server = supervised(workers, config: FILES)
          wait_until("the end", seconds: PATIENCE) do
            server.signal(signal) unless server.exited?
            server.exited?
          end
          assert_left_in_order(server, statuses: [0, 1])
        end
      end
    end
  end

  private

  # Returns a server in a hot restart. Its new program has started and does nothing yet.
  def holding(workers, *arguments, config: "")
    server = supervised(workers, *arguments, config: config, files: { "hold.rb" => HOLD }, environment: { "RUBYOPT" => "-I. -rhold" })
    server.write("version", "2")
    server.write("hold", "")
    server.signal(:USR2)
    wait_until("the new program", seconds: PATIENCE) { File.size?(server.path("held")) }
    server
  end

  def assert_left_in_order(server, statuses: [0])
    assert_includes statuses, server.status.exitstatus, server.status.inspect
    assert_nothing_left(server)
    assert_empty Dir.children(server.directory) & %w[server.pid server.state control.sock app.sock]
  end
end
