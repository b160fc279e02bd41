# frozen_string_literal: true

require "test_helper"
require "open3"
require "timeout"
require_relative "markdown"

# The code in the documents: Ruby must parse, and a block with `run` in its first line (```sh run, ```ruby run) must work in
# the folder of the checkout.
class CodeTest < Minitest::Test
  SECONDS = 60

  def code(*languages)
    Fairlead::Test::Markdown.all(ROOT).flat_map do |document|
      document.code.select { |code| languages.include?(code.language) }
              .map { |code| ["#{document.path}:#{code.line}", code] }
    end
  end

  def test_ruby_parses
    wrong = code("ruby", "rb").filter_map do |place, code|
      RubyVM::InstructionSequence.compile(code.text, place)
      nil
    rescue SyntaxError => e
      "#{place}: #{e.message}"
    end

    assert_empty wrong
  end

  def test_shell_parses
    wrong = code("sh", "bash").filter_map do |place, code|
      output, status = Open3.capture2e("bash", "-n", stdin_data: code.text)
      "#{place}: #{output}" unless status.success?
    end

    assert_empty wrong
  end

  def test_what_is_marked_to_be_run_runs
    commands = { "sh" => %w[bash -euo pipefail -s], "ruby" => [RbConfig.ruby, "-I", "lib", "-"] }
    failed = code("sh", "ruby").select { |_, code| code.marks.include?("run") }.filter_map do |place, code|
      output, status = Timeout.timeout(SECONDS) do
        Open3.capture2e(*commands.fetch(code.language), stdin_data: code.text, chdir: ROOT)
      end
      "#{place}: #{status}\n#{output}" unless status.success?
    end

    assert_empty failed
  end
end
