# frozen_string_literal: true

require "test_helper"

# Ruby leaves functions by jumping over them, so that no destructor runs: memory and descriptors are lost, and what was borrowed
# stays borrowed. The compiler does not see that. This test finds what looks like it in the extension.
class RubyCallsTest < Minitest::Test
  SOURCES = File.expand_path("../../ext/fairlead/src", __dir__)

  # What makes a value with a destructor, in a function over which Ruby may jump.
  OWNING = /\bVec::|vec!|\.to_vec\(|\.clone\(\)|Arc::clone|format!|String::from|\.to_string\(|Box::new|\.borrow(_mut)?\(|\.lock\(|
            take_body|\.collect|to_owned|from_utf8_lossy/x
  FUNCTION = /^(?<indent>\s*)(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?<by_ruby>extern\s"C"\s+)?fn\s(?<name>\w+)/
  MAY_BE_LEFT = /inside\s+`protect`|may raise|raises/i

  # Function => why no Ruby runs while the value exists.
  ACCEPTED = {
    "rack/input.rs make" => "the descriptor is taken out of the body before Ruby is called",
    "rack/response/mod.rs with_ruby" => "what Ruby raises is stopped by `protect` while the exchange is borrowed",
    "rack/session.rs push" => "borrowed for one statement each time, in which no Ruby runs",
    "rack/shape.rs learn" => "borrowed for one statement, in which no Ruby runs",
    "rack/template.rs server" => "borrowed for one expression each time, in which no Ruby runs"
  }.freeze

  # The exchange is borrowed in these closures. Functions that call Ruby take a `ruby`, except those that look at a String.
  BORROWING = /\.(?:with|exchange)(?<closure>\((?:[^()]|\g<closure>)*\))/
  HARMLESS = /\b(?:string_)?bytes\([^()]*\)/

  # File => why it may.
  CALLING = { "rack/errors.rs" => "all Ruby code there is stopped by `protect` within the closure" }.freeze

  def sources = Dir.glob("**/*.rs", base: SOURCES).sort.to_h { |path| [path, File.read(File.join(SOURCES, path))] }

  def test_no_function_over_which_ruby_may_jump_owns_or_borrows
    found = sources.flat_map { |path, text| owning(text.lines).map { |name| "#{path} #{name}" } }

    assert_equal ACCEPTED.keys.sort, found.uniq.sort, "a value with a destructor exists where Ruby may jump"
  end

  def test_no_ruby_is_called_while_the_exchange_is_borrowed
    found = sources.select do |_, text|
      text.to_enum(:scan, BORROWING).any? { Regexp.last_match[:closure].gsub(HARMLESS, "").match?(/\|.*\bruby\b/m) }
    end

    assert_equal CALLING.keys, found.keys, "use Response::with_ruby"
  end

  # Names of the functions that say of themselves that Ruby may leave them, or that Ruby calls, and make such a value.
  def owning(lines)
    lines.each_index.filter_map do |index|
      function = FUNCTION.match(lines[index]) or next
      next unless function[:by_ruby] || documentation(lines, index).match?(MAY_BE_LEFT)

      body = lines.drop(index).take_while { |line| !line.start_with?("#{function[:indent]}}") }
      function[:name] if body.any? { |line| line.match?(OWNING) }
    end
  end

  def documentation(lines, index)
    lines.take(index).reverse.take_while { |line| line.match?(%r{^\s*(///|#\[)}) }.reverse.join.gsub(%r{\s*///}, "")
  end
end
