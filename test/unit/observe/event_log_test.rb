# frozen_string_literal: true

require "test_helper"
require "stringio"

class EventLogTest < Minitest::Test
  def setup
    @output = StringIO.new
    @errors = StringIO.new
    [@output, @errors].each { |stream| stream.set_encoding(Encoding::UTF_8) }
  end

  def test_what_is_in_order_goes_to_the_output_and_what_is_not_to_the_errors
    log.stopped
    log.supervisor_gone

    assert_equal "fairlead stopped\n", @output.string
    assert_equal "the supervisor is gone; finishing open requests\n", @errors.string
  end

  def test_quiet_leaves_the_errors
    log(quiet: true).stopped
    log(quiet: true).supervisor_gone

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
    configurations = [{ workers: 2, threads: [1, 3], environment: "test" }, {}].map { |options| Fairlead::Configuration.from_options(options) }

    process = "(ruby #{RUBY_VERSION}, pid 4711"
    assert_equal ["fairlead #{Fairlead::VERSION} ready in cluster mode #{process}, 2 workers, 1:3 threads each, test)",
                  "fairlead #{Fairlead::VERSION} ready in single mode #{process}, 0:5 threads, development)"],
                 (configurations.map { |configuration| log.ready_text(configuration, pid: 4711) })
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

  def test_details_are_logged_only_if_they_are_wanted
    configuration = Fairlead::Configuration.from_options(max_threads: 7)
    [false, true].each { |wanted| log(debug: wanted).configured(configuration) }

    assert_equal "configuration: max_threads is 7 (Fairlead::Server)\n", @output.string
  end

  def test_the_log_of_a_command_is_what_its_configuration_says
    of(log_format: :json, quiet: true, workers: 1).tap(&:stopped).supervisor_gone
    assert_match(/\A\{.*\}\n\z/, @errors.string)
    assert_empty @output.string

    of(log_formatter: ->(text) { "<#{text}>" }, workers: 1).stopped
    assert_equal "<fairlead stopped>\n", @output.string
  end

  def test_with_a_logger_of_ones_own_the_streams_stay_empty
    own = StringIO.new
    of(custom_logger: own).tap(&:stopped).supervisor_gone

    assert_equal "fairlead stopped\nthe supervisor is gone; finishing open requests\n", own.string
    assert_empty @output.string + @errors.string
  end

  def test_in_a_program_the_log_is_quiet_unless_the_program_has_given_one
    quiet = embedded(nil)
    assert_output("", "the supervisor is gone; finishing open requests\n") { Fairlead::EventLog.for(nil, quiet).tap(&:stopped).supervisor_gone }
    assert_output("fairlead stopped\n") { Fairlead::EventLog.for(nil, embedded(false)).stopped }
    Fairlead::EventLog.for(lines = [], quiet).stopped
    Fairlead::EventLog.for(none = [], embedded(true)).stopped

    assert_equal [["fairlead stopped\n"], []], [lines, none]
  end

  def test_in_a_program_a_log_is_taken_as_it_is_and_other_things_are_refused
    own = log

    assert_same own, Fairlead::EventLog.for(own, embedded(nil))
    error = assert_raises(Fairlead::ConfigurationError) { Fairlead::EventLog.for("log.txt", embedded(nil)) }
    assert_match(/\AFairlead::Server: log: must be a Logger, .* not "log.txt"\z/, error.message)
  end

  private

  def of(**options) = Fairlead::EventLog.of(Fairlead::Configuration.from_options(options), output: @output, errors: @errors)

  def embedded(quiet) = Fairlead::Configuration.embedded(quiet: quiet)

  def log(**options)
    Fairlead::EventLog.new(output: @output, errors: @errors, **options)
  end

  def raised(...)
    raise(...)
  rescue StandardError => e
    e
  end
end
