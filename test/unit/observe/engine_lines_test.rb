# frozen_string_literal: true

require "test_helper"
require "stringio"
require "support/processes"

class EngineLinesTest < Minitest::Test
  include Fairlead::Test::Folders
  include Fairlead::Test::Waiting
  include Fairlead::Test::Processes

  def teardown = @lines&.close

  def test_the_descriptors_are_those_of_the_logs_where_there_are_any
    in_folder do
      File.open("out", "w") do |out|
        files = Fairlead::AccessLog.new("access")
        threads = Thread.list

        assert_equal [files.fileno, out.fileno], fds(Fairlead::EventLog.new(output: out, errors: out), files)
        assert_equal [out.fileno] * 2, fds(Fairlead::EventLog.new(output: out, errors: out), Fairlead::AccessLog.new("-"))
        assert_equal [nil, out.fileno], fds(Fairlead::EventLog.new(output: out, errors: out), Fairlead::AccessLog.new(nil))
        assert_equal threads, Thread.list
      ensure
        files&.close
      end
    end
  end

  def test_what_has_no_descriptor_gets_every_line_and_the_last_one_before_the_end
    log = []
    lines(Fairlead::EventLog.new(logger: log, prefix: true), Fairlead::AccessLog.new("-"))
    requests, errors = [@lines.request_fd, @lines.error_fd].map { |fd| IO.for_fd(fd, autoclose: false) }
    1000.times { |n| requests.syswrite("GET /#{n}\n") }
    errors.syswrite("[#{Process.pid}] cannot accept\n")
    @lines.close

    assert_equal [*Array.new(1000) { |n| "[#{Process.pid}] GET /#{n}\n" }, "[#{Process.pid}] cannot accept\n"].sort, log.sort
  end

  def test_a_line_that_the_log_does_not_take_costs_no_other
    seen = Thread::Queue.new
    log = Fairlead::EventLog.new(logger: [])
    log.define_singleton_method(:engine_failed) { |line| line == "bad" ? raise("no") : seen << line }
    lines(log, Fairlead::AccessLog.new(nil))
    IO.for_fd(@lines.error_fd, autoclose: false).syswrite("bad\ngood \xFF\n")

    wait_until("the second line") { !seen.empty? }
    assert_equal "good \uFFFD", seen.pop
  end

  def test_a_reader_that_hangs_is_not_waited_for_long_and_writers_that_are_late_write_to_nowhere
    log = Fairlead::EventLog.new(logger: [])
    log.define_singleton_method(:engine_failed) { |_| sleep }
    lines(log, Fairlead::AccessLog.new(nil))
    io = IO.for_fd(@lines.error_fd, autoclose: false)
    io.syswrite("one\n")

    assert_operator seconds_of { @lines.close }, :<, 5
    io.syswrite("late\n")
    assert_equal "/dev/null", File.readlink("/proc/self/fd/#{@lines.error_fd}")
  end

  private

  def lines(log, access_log) = @lines = Fairlead::EngineLines.new(log, access_log)

  def fds(log, access_log) = lines(log, access_log).then { |lines| [lines.request_fd, lines.error_fd] }
end
