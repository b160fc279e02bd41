# frozen_string_literal: true

require "test_helper"
require "stringio"

class EventLogTest < Minitest::Test
  Child = Struct.new(:slot, :pid)

  def setup
    @output = StringIO.new
    @errors = StringIO.new
    [@output, @errors].each { |stream| stream.set_encoding(Encoding::UTF_8) }
  end

  def test_what_is_in_order_goes_to_the_output_and_what_is_not_to_the_errors
    log.draining(:TERM, 30)
    log.signal_ignored(:USR1)

    assert_equal "TERM: finishing what has arrived, for up to 30 s\n", @output.string
    assert_equal "USR1: ignored, restarts are not supported yet\n", @errors.string
  end

  def test_quiet_leaves_the_errors
    log(quiet: true).stopped
    log(quiet: true).last_worker_kept

    assert_empty @output.string
    refute_empty @errors.string
  end

  def test_with_workers_every_line_says_whose_it_is
    log(prefix: true).stopped

    assert_equal "[#{Process.pid}] fairlead stopped\n", @output.string
  end

  def test_files_that_are_alone_are_told
    Dir.mktmpdir do |folder|
      log.files_only(Fairlead::Configuration.from_options(public_dir: folder))

      assert_equal "there is no config.ru: serving only the files in #{folder}\n", @output.string
    end
  end

  def test_ready_says_what_is_ready
    log.ready(Fairlead::Configuration.from_options(workers: 2, threads: [1, 3], environment: "test"))
    log.ready(Fairlead::Configuration.from_options({}))

    process = "(ruby #{RUBY_VERSION}, pid #{Process.pid}"
    assert_equal "fairlead #{Fairlead::VERSION} ready in cluster mode #{process}, 2 workers, 1:3 threads each, test)\n" \
                 "fairlead #{Fairlead::VERSION} ready in single mode #{process}, 0:5 threads, development)\n", @output.string
  end

  def test_the_end_of_a_worker_is_described
    [-> { Process.kill(:KILL, Process.pid) }, -> { exit!(3) }].each do |death|
      log.worker_ended(Child.new(1, 99), Process.wait2(fork(&death)).last)
    end

    assert_equal ["worker 1 (pid 99) ended unexpectedly: killed by SIGKILL\n", "worker 1 (pid 99) ended unexpectedly: exit status 3\n"],
                 @errors.string.lines
  end

  def test_an_error_of_the_application_is_one_entry_with_its_backtrace
    log.app_failed(raised(RuntimeError, "boo \xFF"), "GET /")

    assert_match(%r{\Aerror in the application: GET /: \S*event_log_test\.rb:\d+:.*boo .* \(RuntimeError\)\n\tfrom }, @errors.string)
    assert_predicate @errors.string, :valid_encoding?
  end

  def test_an_exception_that_cannot_tell_its_message_is_logged_all_the_same
    sulking = Class.new(StandardError) { def message = raise("no") }
    log.app_failed(raised(sulking), "GET /")

    assert_includes @errors.string, "GET /"
  end

  def test_an_output_that_is_gone_harms_nobody
    reader, writer = IO.pipe
    reader.close
    Fairlead::EventLog.new(output: writer).stopped
    writer.close
    Fairlead::EventLog.new(output: writer).stopped
  end

  private

  def log(**options)
    Fairlead::EventLog.new(output: @output, errors: @errors, **options)
  end

  def raised(...)
    raise(...)
  rescue StandardError => e
    e
  end
end
