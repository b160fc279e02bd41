# frozen_string_literal: true

module Fairlead
  class Engine
    # The Ruby threads of an engine, on which the application runs: starts them, and replaces those that end before they are
    # dismissed. For Engine only, whose instance variables it uses.
    module Threads
      # Pause before another attempt to start a thread in the place of one that ends, in seconds.
      RETRY_PAUSE = 0.1

      # How far a thread has come: +serves+ once the native engine counts it itself, +dismissed+ once that needs it no more.
      Progress = Struct.new(:name, :serves, :dismissed, :raised) do
        def killed? = serves && !dismissed && !raised
      end
      private_constant :Progress

      # How long nobody takes the place of a thread that has ended before it served, if that happens again, in seconds.
      PAUSE = 1

      private

      def threads = @lock.synchronize { @threads.dup }

      # The engine counts these threads already. Those that cannot be started are cancelled.
      def start_threads(count)
        started = 0
        count.times do
          add_thread
          started += 1
        end
      ensure
        (count - started).times { @native.cancel_thread }
      end

      # Starts a thread that the engine counts already. The engine calls this from any thread, even before Native::Engine.new has
      # returned, so a new thread waits for @created. To be called masked, which the thread inherits: one that is killed before it
      # begins still runs, and has itself replaced.
      def add_thread
        @lock.synchronize do
          progress = Progress.new("fairlead #{@started += 1}")
          thread = Thread.new { run_thread(progress) }
          thread.name = progress.name
          thread.report_on_exception = false
          @threads << thread
        end
      end

      # Puts interrupts from other threads (Thread#kill, Thread#raise) off until the block has ended.
      def masked(&) = Thread.handle_interrupt(Object => :never, &)

      # All code of the application, and all loggers, run in such a block: threads that they start must not be masked.
      def unmasked(&) = Thread.handle_interrupt(Object => :immediate, &)

      def run_thread(progress)
        unmasked { serve(progress) }
      ensure
        thread_ended(progress) if own_process?
      end

      def serve(progress)
        @created.pop
        run_hooks(:before_thread_start)
        @service.log.thread_serves(progress.name)
        progress.serves = true
        progress.dismissed = @native.run
      rescue Exception => e # rubocop:disable Lint/RescueException -- it would go unnoticed otherwise
        raise unless own_process?

        # The request in which that was to be raised may just have ended.
        @service.log.thread_died(progress.name, e) unless e.is_a?(ForcedShutdown)
        progress.raised = true
      end

      def thread_ended(progress)
        unmasked do
          @service.log.thread_killed(progress.name) if progress.killed? && !@ending && !ProcessEnd.begun?
          run_hooks(:before_thread_exit)
          @service.log.thread_ends(progress.name)
        end
      ensure
        @lock.synchronize { @threads.delete(Thread.current) }
        replace_thread(counted: !progress.serves) unless progress.dismissed
      end

      # Starts a thread in the place of this one, which stays until that has succeeded: perhaps no other one is left that could try.
      # +counted+: whether the engine still counts this one, because it has never served.
      def replace_thread(counted:)
        return if ProcessEnd.begun?

        pause if counted
        if @ending
          @native.cancel_thread if counted
        elsif counted || @native.replace_thread
          start_threads(1)
        end
      rescue ThreadError, NoMemoryError => e
        tell_once(e)
        sleep RETRY_PAUSE
        counted = false # it has been cancelled
        retry
      end

      # No thread can be started, so a logger cannot start one either that would be masked.
      def tell_once(error)
        @service.log.thread_not_replaced(error) unless @lock.synchronize { @failure_told.tap { @failure_told = true } }
      end

      # A hook that ends each thread at its start must not keep the process busy with nothing else.
      def pause
        @lock.synchronize do
          again = @unserved_at && now - @unserved_at < PAUSE
          @stopping.wait(@lock, PAUSE) if again && !@ending
          @unserved_at = now
        end
      end
    end
  end
end
