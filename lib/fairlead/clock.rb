# frozen_string_literal: true

module Fairlead
  # The operating system's clocks, in seconds.
  module Clock # :nodoc:
    # Time since an arbitrary moment. Changes of the system's time do not affect it.
    def self.now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)

    # Processor time that this process has used.
    def self.processor_time = ::Process.clock_gettime(::Process::CLOCK_PROCESS_CPUTIME_ID)
  end
end
