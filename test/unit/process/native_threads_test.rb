# frozen_string_literal: true

require "test_helper"
require "support/waiting"
require "fairlead/process/native_threads"

class NativeThreadsTest < Minitest::Test
  include Fairlead::Test::Waiting

  def test_it_tells_who_sleeps_who_runs_and_who_is_stopped
    reader, writer = IO.pipe
    pid = fork do
      Thread.new { sleep }
      writer.write(".")
      loop { nil }
    end
    reader.readpartial(1)
    wait_until("some work") { described(pid).match?(/\Aruby\S* running \(\d+\.\d s\)/) }
    assert_match(/, \S+ (asleep|in \w+)/, described(pid))

    Process.kill(:STOP, pid)
    wait_until("it to stop") { described(pid).match?(/\Aruby\S* stopped/) }
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def test_of_a_process_that_is_gone_it_tells_nothing
    pid = fork { exit!(0) }
    Process.wait(pid)

    assert_equal "", described(pid)
  end

  private

  def described(pid) = Fairlead::NativeThreads.describe(pid)
end
