# frozen_string_literal: true

module Fairlead
  # The main loop of a process that serves: a worker, or a server without workers. The class that includes it has
  # @service, @engine and @signals, and #beat, which shows the supervisor that the process is alive.
  #
  #   serving ──drain──▶ (drain_delay) ──▶ draining ──all done, or shutdown_timeout, or long_drain──▶ ended
  #      └──────stop──────────┴────────────stop────────────────────────▲
  module Serving
    # Longest wait for threads of the application after the last request, in seconds, if nobody has asked for the end.
    WORK_PATIENCE = 60

    # Seconds between two looks at them, at least. A look at a large heap takes long, so the pause is so many times as long.
    WORK_PAUSE = 0.5
    WORK_PAUSE_FACTOR = 20

    private

    # Runs until the engine has ended. Yields signals, +link+ when it is readable, and :HEARTBEAT at least every
    # +heartbeat+ seconds.
    def serve(link = nil, heartbeat: nil, &handler)
      until @ended
        handler.call(:HEARTBEAT) if heartbeat
        @signals.wait(heartbeat, *[link].compact.reject(&:closed?)).each do |event|
          event == :ENDED ? @ended = true : handler.call(event)
        end
      end
      @drain&.join
    end

    def draining? = @draining == true

    # Ends once all requests that have arrived are finished. A thread waits for that, so that signals are still handled; if the
    # system has no room for a thread, this thread waits, and calls #beat. +long+: seconds for them, if that is longer than `shutdown_timeout`. A
    # second call may shorten the time, and says if the other workers end, too. +how+: see Engine#drain.
    def drain(long: 0, delay: 0, migrate: false, **how)
      seconds = [@service.configuration.shutdown_timeout, long].max
      return hurry(seconds, delay, migrate: migrate) if draining?

      @draining = true
      @limit = seconds
      @migrates = migrate
      how = { delay: delay, stay: long, migrate: migrate, **how }
      @drain = Thread.new { finish(**how) }
    rescue ThreadError => e
      @service.log.drain_without_thread(e)
      finish(heartbeat: -> { beat }, **how)
    end

    # Clients that wait for another worker must not wait if there is none any more.
    def hurry(seconds, delay, migrate:)
      return unless seconds < @limit || (@migrates && !migrate)

      @hurried = true
      @limit = [@limit, seconds].min
      @migrates &&= migrate
      @engine.hurry(seconds + delay, migrate: migrate)
    end

    def finish(**how)
      finished = @engine.drain(@limit, **how) { wait_for_work(how[:heartbeat]) if how[:patient] }
      @service.log.drain_timed_out(@limit) unless finished || @stopped
    ensure
      @signals.push(:ENDED)
    end

    # Lets timers run, and jobs end that the application runs in threads of its own. A thread that goes on and on does not keep the
    # process. +heartbeat+: as for Engine#drain.
    def wait_for_work(heartbeat = nil)
      give_up = Clock.now + WORK_PATIENCE
      Background.current.timers.linger(WORK_PATIENCE)
      until @stopped || @hurried || (began = Clock.now) > give_up || !work?
        sleep_while_patient([WORK_PAUSE, (Clock.now - began) * WORK_PAUSE_FACTOR].max, heartbeat)
      end
    rescue Exception => e # rubocop:disable Lint/RescueException -- a class of the application may raise any, such as SystemExit
      @service.log.warning("it is unknown if the application works in other threads: #{Error.plain(e)}")
    end

    def work? = Background.current.timers.linger? || ForkSafety.busy?

    # Sleeps, but not on if somebody asks for the end.
    def sleep_while_patient(seconds, heartbeat)
      until_then = Clock.now + seconds
      until @stopped || @hurried || Clock.now >= until_then
        heartbeat&.call
        sleep(WORK_PAUSE)
      end
    end

    # Ends now and aborts all requests.
    def stop
      @stopped = true
      @engine.stop
      @signals.push(:ENDED)
    end
  end
end
