# frozen_string_literal: true

require "test_helper"

# Every method of the extension that lib/ calls must exist: some are called only after a failure.
class NativeCallsTest < Minitest::Test
  # Receiver of the call => check of its methods.
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
