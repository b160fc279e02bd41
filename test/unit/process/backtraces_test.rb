# frozen_string_literal: true

require "test_helper"
require "json"
require "stringio"

# Names of threads and requests, with any bytes, in backtraces.
class BacktracesTest < Minitest::Test
  Backtraces = Fairlead::Backtraces

  NAMES = {
    "a\n[1] forged\e" => "a\\x0A[1] forged\\x1B", "\xFF".b => "\\xFF", "cut \xC3" => "cut \\xC3", "gr\u00FC\u00DFe" => "gr\u00FC\u00DFe"
  }.freeze

  def setup
    @threads = NAMES.each_key.map { |name| Thread.new { sleep }.tap { |thread| thread.name = name } }
  end

  def teardown
    @threads.each { |thread| thread.kill.join }
  end

  def test_a_name_of_any_bytes_is_a_part_of_a_line
    output = StringIO.new
    Backtraces.print(Fairlead::EventLog.new(output: output, errors: output))
    lines = output.string.lines.grep(/\Athread/).join

    NAMES.each_value { |name| assert_includes lines, "thread #{name} (" }
    refute_match(/^\[1\]/, output.string)
  end

  def test_names_of_any_bytes_can_be_asked_for
    assert_empty NAMES.values - written(Backtraces.all)
    assert_empty NAMES.values.map { |name| "Thread: #{name}" } - written(Backtraces.in_form_of_puma)
  end

  def test_a_request_of_any_bytes_is_a_part_of_a_line
    assert_equal "GET /a/\u00FC\\x0A\\xFF", Backtraces.request("REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "/a", "PATH_INFO" => "/\u00FC\n\xFF".b)
    assert_equal "GET /\\x0A\u00FC", Backtraces.request("REQUEST_METHOD" => :GET, "PATH_INFO" => "/\n\u00FC")
  end

  private

  def written(values)
    reader, writer = IO.pipe
    Backtraces.write(values, writer).join
    JSON.parse(reader.read).map { |thread| thread["name"] }
  ensure
    reader.close
  end
end
