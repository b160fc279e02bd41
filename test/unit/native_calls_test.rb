# frozen_string_literal: true

require "test_helper"

# What lib/ calls of the extension, the extension has: some of it is called only when something fails.
class NativeCallsTest < Minitest::Test
  # The word that the call begins with => what has the methods.
  RECEIVERS = {
    "@native" => ->(name) { Fairlead::Native::Engine.method_defined?(name) },
    "@shared" => ->(name) { Fairlead::Native::Shared.method_defined?(name) },
    "@supervisor" => ->(name) { Fairlead::Native::Supervisor.method_defined?(name) },
    "native" => ->(name) { Fairlead::Native.respond_to?(name) },
    "Native" => ->(name) { Fairlead::Native.respond_to?(name) }
  }.freeze
  CALL = /(?<![\w@])(@native|@shared|@supervisor|native|Native)&?\.([a-z]\w*[!?]?)/

  def test_every_method_that_is_called_exists
    calls = Dir.glob("lib/**/*.rb", base: ROOT).flat_map do |path|
      code = File.readlines(File.join(ROOT, path)).grep_v(/\A\s*#|\brequire\b|\bautoload\b/).join
      code.scan(CALL).map { |call| [path, *call] }
    end

    assert_operator calls.size, :>, 15
    assert_empty(calls.reject { |_, receiver, name| RECEIVERS.fetch(receiver).call(name) })
  end
end
