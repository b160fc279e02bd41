# frozen_string_literal: true

require "test_helper"
require "stringio"
require "tempfile"

class EventLogTextTest < Minitest::Test
  Text = Fairlead::EventLog::Text

  def setup
    @output = StringIO.new
    @errors = StringIO.new
  end

  def test_a_formatter_makes_the_line_and_the_process_id_is_its_business
    text = Text.new(@output, @errors, prefix: true, formatter: ->(line) { "<#{line}>\n" })
    text.write(:info, nil, "one")

    assert_equal "<one>\n", @output.string
  end

  def test_a_formatter_that_raises_costs_no_message
    Text.new(@output, @errors, formatter: ->(_) { raise "no" }).write(:error, nil, "one")

    assert_equal "one\n", @errors.string
  end

  def test_an_object_that_only_takes_texts_gets_them
    lines = []
    Text.new(lines, lines).write(:warn, nil, "one")

    assert_equal ["one\n"], lines
  end

  def test_the_engine_writes_to_the_same_files_if_nobody_formats_its_lines
    Tempfile.create do |file|
      assert_equal [file.fileno] * 2, Text.new(file, file).then { |text| [text.request_fd, text.error_fd] }
      assert_equal [file.fileno, nil], Text.new(file, file, formatter: ->(line) { line }).then { |text| [text.request_fd, text.error_fd] }
    end
    assert_nil Text.new(@output, @errors).error_fd
    assert_nil Text.new([], []).request_fd
  end
end
