# frozen_string_literal: true

module Fairlead
  module Tls
    # Keeps one Offer up to date, on its own thread: a file, a command or an error of this address delays no other one.
    class Upkeep
      # Seconds that the end waits for the thread, which may hang in a file.
      PATIENCE = 1

      attr_reader :offer

      def initialize(offer)
        @offer = offer
        @settling = Settling.new(offer.tried)
        @lock = Mutex.new
        @reading = Mutex.new
        @wake = ConditionVariable.new
        @asked = @ending = false
      end

      # Starts the thread, or a new one if it was killed or belongs to a parent process. The block is called on the thread when
      # the files were read and the result is news: with the reason of the failure, or nil. +interval+: seconds between two
      # looks at the files; 0 for only when asked, and after a failure. +tried+: called on the thread after each attempt.
      def start(interval = 0, tried: nil, &told)
        @told = told
        @then = tried
        @settling.interval = offer.files? ? interval : 0
        return if @thread&.alive?

        @thread = Thread.new { step until @ending }
        @thread.name = "fairlead certificates"
      end

      # Has the thread read the files now.
      def ask
        @lock.synchronize do
          @asked = true
          @wake.signal
        end
      end

      # Reads the files, on the thread of the caller. Returns nil or the reason of the failure.
      def reload
        @reading.synchronize { attempt.last }
      end

      def stop
        @lock.synchronize do
          @ending = true
          @wake.signal
        end
        @thread&.join(PATIENCE) || @thread&.kill&.join(PATIENCE)
      end

      private

      def step
        asked = wait
        return if @ending || !(asked || @settling.due?(look, Clock.now))

        news, reason = @reading.synchronize { attempt }
        @told.call(reason) if news || asked
        @then&.call
      rescue StandardError, ScriptError, NoMemoryError => e # of the caller's block
        @settling.tried(offer.tried, Clock.now, failed: true)
        @said = Error.sum_up(e)
      end

      # The state of the files.
      def look
        began = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
        offer.signature.tap { @settling.looked(Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - began) }
      end

      # Returns true if a caller has asked for a reading.
      def wait
        @lock.synchronize do
          @wake.wait(@lock, @settling.pause(Clock.now)) unless @asked || @ending
          @asked.tap { @asked = false }
        end
      end

      # Returns true if the result is news, and the reason of a failure.
      def attempt
        changed = offer.reload
        @settling.tried(offer.tried, Clock.now, failed: false)
        [changed || !@said.nil?, @said = nil]
      rescue Invalid => e
        @settling.tried(offer.tried, Clock.now, failed: true)
        [e.message != @said, @said = e.message]
      end
    end
  end
end
