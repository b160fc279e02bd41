# frozen_string_literal: true

require "test_helper"
require "fiddle"
require "io/nonblock"
require "fairlead/native"

# The methods of Fairlead::Native for processes.
class NativeProcessTest < Minitest::Test
  include Fairlead::Test::Waiting

  Native = Fairlead::Native

  # A shell would handle the signal; this program prints the blocked ones.
  def test_signals_wait_for_the_next_program
    reader, writer = IO.pipe
    pid = fork do
      $stdout.reopen(writer)
      Native.exec("/bin/cat", ["the title", "/proc/self/status", "/proc/self/cmdline"], ["A=b"])
    end
    writer.close
    text = reader.read
    Process.wait(pid)
    blocked = Integer(text[/SigBlk:\s*(\h+)/, 1], 16)

    assert_empty(%w[TERM INT HUP QUIT USR1 USR2 TTIN TTOU URG PWR CHLD].reject { |name| blocked[Signal.list.fetch(name) - 1] == 1 })
    assert_includes text, "the title\0/proc"
  end

  # Another thread of this process can take a signal that the executing thread has blocked.
  def test_no_signal_is_lost_on_the_way_to_the_next_program
    fates = Array.new(60) { |number| fate_of_a_signal_to_a_process_that_executes_another_program(number * 0.00005) }

    assert_equal 0, fates.count(:lost)
  end

  # A failed attempt leaves the masks visible.
  def test_all_threads_block_signals_also_if_they_have_blocked_some_or_all
    linux_only("a way to change the mask of another thread")
    output, theirs = IO.pipe
    Process.wait(fork do
      masks = [(1 << 64) - 1, 1 << (Signal.list["INT"] - 1), 0]
      threads = masks.map { |mask| Thread.new { block_signals(mask) && sleep } }
      Thread.pass until threads.all?(&:stop?)
      Native.exec("/nowhere", ["x"], []) rescue nil # rubocop:disable Style/RescueModifier -- as expected
      theirs.puts(threads.map { |thread| blocked_signals(thread.native_thread_id) })
    end)
    theirs.close

    assert_equal [1, 1, 1], output.readlines.map { |line| Integer(line[/\h{16}/], 16)[Signal.list["TERM"] - 1] }
  end

  # Only the main thread's stack has a name.
  def test_memory_of_the_stack_is_returned
    linux_only("the memory of each mapping")
    output, theirs = IO.pipe
    Process.wait(fork do
      nest(2000)
      theirs.puts stack_kib
      Thread.new { Native.release_stack! }.join
      theirs.puts stack_kib
      Native.release_stack!
      theirs.puts stack_kib
      nest(2000)
    end)
    theirs.close
    used, kept, left = output.readlines.map { |line| Integer(line, 10) }

    assert_operator used, :>, 500
    assert_equal used, kept
    assert_operator left, :<, 300
  end

  def test_a_program_that_is_missing_changes_nothing
    before = blocked_signals

    assert_raises(Errno::ENOENT) { Native.exec("/nowhere", ["x"], []) }
    assert_equal before, blocked_signals
    assert_raises(ArgumentError) { Native.exec("/bin/true\0", ["x"], []) }
  end

  def test_a_process_ends_with_the_other_end_of_its_link
    ours, theirs = Fairlead::Link.pair
    pid = fork do
      ours.close
      Native.end_with_link!(theirs.fileno, 600, 1)
      loop { nil } # no other Ruby thread gets to run
    end
    theirs.close
    ours.send(:hello)
    refute Process.wait(pid, Process::WNOHANG)
    ours.close

    assert_equal Signal.list["KILL"], within(10) { Process.wait2(pid).last.termsig }
  end

  # A user without other processes.
  def test_no_room_for_a_thread_is_the_error_of_ruby
    skip "needs root" unless Process.uid.zero?

    reader, writer = IO.pipe
    pid = fork do
      Process::UID.change_privilege(54_321)
      Process.setrlimit(:NPROC, 1)
      Native.end_with_link!(reader.fileno, 600, 1)
    rescue ThreadError => e
      writer.write(e.message)
    ensure
      writer.close
      exit!
    end
    writer.close
    Process.wait(pid)

    assert_match(/\Acan't create Thread: the link: /, reader.read)
  end

  def test_a_process_ends_with_its_parent
    reader, writer = IO.pipe
    parent = fork { fork_one_that_waits(writer) }
    writer.close
    child = Integer(reader.gets, 10)
    Process.wait(parent)

    assert_nil within(10) { reader.gets }, "process #{child} still runs"
    refute Native.end_with_parent!(Process.ppid + 1)
  end

  private

  # Needs a frame of the machine's stack for each level.
  def nest(depth) = depth.zero? || [0].sort_by { nest(depth - 1) }

  def stack_kib
    File.read("/proc/self/smaps").split(/^(?=\h+-\h+ )/).find { |mapping| mapping.lines.first.include?("[stack]") }[/^Rss:\s+(\d+)/, 1].to_i
  end

  # Blocks signals in this thread. Returns true on success.
  def block_signals(mask)
    arguments = [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP]
    function = Fiddle::Function.new(Fiddle.dlopen(nil)["pthread_sigmask"], arguments, Fiddle::TYPE_INT)
    function.call(0, [mask].pack("Q").ljust(128, "\0"), nil).zero?
  end

  # Sends TERM after so many seconds. A large environment makes the execution slow enough.
  def fate_of_a_signal_to_a_process_that_executes_another_program(seconds)
    output, theirs = IO.pipe
    input, sent = IO.pipe
    pid = fork { execute_another_program(input, theirs, sent) }
    [input, theirs].each(&:close)
    output.gets
    at = monotonic + seconds
    nil while monotonic < at
    Process.kill(:TERM, pid)
    sent.close
    text = output.read
    Process.wait(pid)
    return :trapped if text.include?("trapped")

    text.scan(/^S[ih][gd]Pnd:\s*(\h+)/).any? { |(mask)| Integer(mask, 16)[Signal.list["TERM"] - 1] == 1 } ? :pending : :lost
  end

  # The other program prints its pending signals as soon as its input ends.
  def execute_another_program(input, output, sent)
    sent.close
    input.nonblock = false
    $stdin.reopen(input)
    $stdout.reopen(output)
    trap(:TERM) { $stdout.syswrite("trapped\n") }
    Thread.new { sleep }
    environment = Array.new(6000) { |number| "NAME#{number}=#{"x" * 200}" }
    $stdout.syswrite("go\n")
    Native.exec("/bin/cat", ["cat", "-", "/proc/self/status"], environment)
  end

  # Forks a process that asks to end with its parent, and then ends.
  def fork_one_that_waits(writer)
    parent = Process.pid
    asked, asking = IO.pipe
    fork do
      writer.puts(Process.pid)
      asking.puts(Native.end_with_parent!(parent))
      sleep
    end
    asked.gets
    exit!
  end

  def blocked_signals(thread = Thread.current.native_thread_id) = File.read("/proc/self/task/#{thread}/status")[/SigBlk:.*/]

  def within(seconds, &block)
    thread = Thread.new(&block)
    thread.join(seconds) ? thread.value : flunk("not done within #{seconds} s")
  end
end
