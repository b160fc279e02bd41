# frozen_string_literal: true

require "test_helper"

# Ruby leaves C functions by a jump (an exception, `throw`, `Thread#kill`), which skips destructors of Rust: memory and
# descriptors leak, and a borrowed cell or a lock is never released. Functions that Ruby may jump over say "Inside `protect`"
# in their comment. They own nothing with a destructor, and no function calls Ruby while it holds a cell or a lock.
#
# The test reads the text as rustfmt formats it, so it recognizes the usual ways to make such values, not all of them.
class JumpsTest < Minitest::Test
  FOLDER = File.join(ROOT, "ext/fairlead/src")
  FUNCTION = %r{
    ^(?<docs>(?:\ *///[^\n]*\n)*)(?:\ *\#\[[^\n]*\n)*
    (?<indent>\ *)(?:pub(?:\([^)]*\))?\ )?(?:unsafe\ )?(?:extern\ "C"\ )?fn\ (?<name>\w+)
    (?<rest>[^;\{]*\{\n.*?^\k<indent>\}\n)
  }mx

  OWNED = /\b(?:Vec|String|Box|Arc|Rc|HashMap|CString)::(?!<)|\bvec!|\bformat!|
    \.(?:to_vec|to_string|to_owned|into_owned|collect|borrow|borrow_mut|lock|try_clone|take_body)\(/x
  OF_RUBY = /(?<![\w.])(?!bytes|string_bytes)(?:[\w.]+)\((?:self\.)?ruby\b|\bruby\.\w+\(|\bprotect\(/
  BORROW = /(?<!Response)\.(?:with|exchange|response)(?<call>\((?:[^()]|\g<call>)*\))/
  GUARD = /\blet (?:mut )?(?<guard>\w+) = (?:(?:self\.)?[\w.]+\.(?:lock|borrow|borrow_mut)\(\)|current\(\)|threads\(\));(?<rest>.*)/m

  # Function => reason for the exemption.
  EXEMPT = {
    "rack/errors.rs report" => "the references to this response have ended, and each call of Ruby is in a `protect` of its own",
    "rack/input.rs make" => "the body is taken right before a C function that raises nothing; no other Ruby function follows",
    "rack/response/mod.rs with_ruby" => "each call of Ruby is in a `protect` of its own, and the borrow ends before it is passed on",
    "rack/session.rs push" => "both borrows end with their statements",
    "rack/template.rs server" => "both borrows end with their statements",
    "rack/shape.rs learn" => "the borrow is the last statement"
  }.freeze

  def test_functions_that_ruby_may_jump_over_own_nothing
    assert_none { |function| function.code[OWNED] if function.docs.match?(/\binside `protect`/i) }
  end

  def test_ruby_is_not_called_while_a_response_is_borrowed
    assert_none { |function| function.code.to_enum(:scan, BORROW).map { Regexp.last_match[:call] }.grep(OF_RUBY).first }
  end

  def test_ruby_is_not_called_while_a_lock_or_a_cell_is_taken
    assert_none do |function|
      taken = GUARD.match(function.code) or next
      taken[:rest].split(/\bdrop\(#{taken[:guard]}\)/).first[OF_RUBY]
    end
  end

  # If this fails, adapt the pattern to the code.
  def test_the_functions_are_found
    assert_operator functions.count { |function| function.docs.match?(/\binside `protect`/i) }, :>, 40
    assert_empty EXEMPT.keys.map { |name| name.split.first }.uniq - functions.map(&:file), "exempt files that do not exist"
  end

  private

  Function = Struct.new(:file, :name, :docs, :code)

  def functions
    @functions ||= Dir.glob("**/*.rs", base: FOLDER).flat_map do |file|
      text = File.read(File.join(FOLDER, file))
      text.to_enum(:scan, FUNCTION).map do
        found = Regexp.last_match
        Function.new(file, found[:name], found[:docs], found[:rest].gsub(%r{//.*}, ""))
      end
    end
  end

  def assert_none
    found = functions.filter_map do |function|
      name = "#{function.file} #{function.name}"
      fault = yield(function) unless EXEMPT.key?(name)
      "#{name}: #{fault}" if fault
    end

    assert_empty found
  end
end
