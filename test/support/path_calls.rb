# frozen_string_literal: true

module Fairlead
  module Test
    # For tests that count path operations of code below lib.
    module PathCalls
      LIB = File.join(ROOT, "lib/")

      # Counts the calls, from code below lib, of methods that check every segment of a path.
      COUNTER = <<~RUBY.freeze
        module PathCalls
          NAMES = %i[expand_path absolute_path realpath realdirpath].freeze
          SEEN = []
          TRACE = TracePoint.new(:c_call) do |call|
            SEEN << "\#{call.path}:\#{call.lineno}" if NAMES.include?(call.method_id) && call.path.start_with?(#{LIB.inspect})
          end
        end
        PathCalls::TRACE.enable
      RUBY
    end
  end
end
