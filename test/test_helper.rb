# frozen_string_literal: true

# Every test file requires this first: minitest, the checkout's lib and the helpers in test/support. A warning about
# Fairlead's own code is an error; warnings about other gems are ignored.

ROOT = File.expand_path("..", __dir__) unless defined?(ROOT)
$LOAD_PATH.unshift(File.join(ROOT, "lib")) unless $LOAD_PATH.include?(File.join(ROOT, "lib"))

require "minitest/autorun"

module Fairlead
  module Test
    # Raised instead of printing a warning that points into this checkout.
    class WarningError < StandardError; end

    module WarningsRaise
      def warn(message, *, **)
        raise WarningError, message if message.include?(ROOT)

        super
      end
    end
  end
end
Warning.extend(Fairlead::Test::WarningsRaise)

require "fairlead"
require_relative "support/folders"
require_relative "support/waiting"
require_relative "support/server_process"
require_relative "support/servers"

module Minitest
  class Test
    # Skips a test of something that only Linux has, in a build that does not use it (docs/porting.md).
    def linux_only(facility)
      skip("only Linux has #{facility}") if Fairlead::Native.portable?
    end
  end
end
