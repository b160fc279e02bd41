# frozen_string_literal: true

module Fairlead
  class Engine
    # The Ruby threads of an engine, on which the application runs: starts them, and replaces threads that end before they are
    # dismissed. For Engine only; uses its instance variables.
    module Threads
      # Seconds until another attempt to replace a thread that ends.
      RETRY_PAUSE = 0.1

      # The progress of a thread: +serves+ once the native engine itself counts it, +dismissed+ once the engine no longer needs
      # it.
      Progress = Struct.new(:name, :serves, :dismissed, :raised) do
        def killed? = !dismissed && !raised
      end
      private_constant :Progress

      # Seconds before a thread is replaced that has ended before it served, if that happens again.
      PAUSE = 1

      # The name of a thread that has ended. A native thread of a library keeps the name of the thread that has started it.
      ENDED = "fairlead ended"

      private

      def threads = @lock.synchronize { @threads.dup }

      # The engine counts these threads already. Threads that cannot be started are cancelled.
      def start_threads(count)
        started = 0
        count.times do
          add_thread
          started += 1
        end
      ensure
        (count - started).times { @native.cancel_thread }
      end

      # Starts a thread that the engine counts already. The engine calls this from any thread, even before Native::Engine.new
      # has returned, so a new thread waits for @created. Call this masked: the thread inherits the mask, so a thread that is
      # killed before it begins still runs, and has itself replaced.
      def add_thread
        @lock.synchronize do
          progress = Progress.new("fairlead #{@started += 1}")
          thread = Thread.new { run_thread(progress) }
          thread.name = progress.name
          thread.report_on_exception = false
          @threads << thread
        end
      end

      # Defers interrupts from other threads (Thread#kill, Thread#raise) until the block has ended.
      def masked(&) = Thread.handle_interrupt(Object => :never, &)

      # Runs code of the application and loggers: threads that they start must not be masked.
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

        # The request that this exception was meant for may just have ended.
        @service.log.thread_died(progress.name, e) unless e.is_a?(ForcedShutdown)
        progress.raised = true
      end

      def thread_ended(progress)
        unmasked do
          tell_of_kill(progress) if progress.killed? && !@stopped && !ProcessEnd.begun?
          run_hooks(:before_thread_exit)
          @service.log.thread_ends(progress.name)
        end
      ensure
        @lock.synchronize { @threads.delete(Thread.current) }
        replace_thread(counted: !progress.serves) unless progress.dismissed
        Thread.current.name = ENDED # Ruby keeps the native thread for some seconds
      end

      def tell_of_kill(progress)
        return @service.log.thread_killed(progress.name) if progress.serves

        @service.log.thread_killed_at_start(progress.name)
      end

      # Starts a replacement for this thread, also during a drain. This thread stays until that has succeeded: perhaps no other thread is
      # left to try. +counted+: true if the engine still counts this thread, because it has never served.
      def replace_thread(counted:)
        return if ProcessEnd.begun?

        pause if counted
        if @stopped
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

      # No thread can be started, so a logger cannot start a masked thread either.
      def tell_once(error)
        @service.log.thread_not_replaced(error) unless @lock.synchronize { @failure_told.tap { @failure_told = true } }
      end

      # A hook that ends each thread at its start must not keep the process busy.
      def pause
        @lock.synchronize do
          again = @unserved_at && Clock.now - @unserved_at < PAUSE
          @stopping.wait(@lock, PAUSE) if again && !@stopped
          @unserved_at = Clock.now
        end
      end
    end
  end
end
