# frozen_string_literal: true

module Fairlead
  # The main loop of a process that serves: a worker, or a server without workers. The class that includes it has
  # @service, @engine and @signals.
  #
  #   serving ──drain──▶ (drain_delay) ──▶ draining ──all done, or shutdown_timeout──▶ ended
  #      └──────stop──────────┴────────────stop────────────────────────▲
  module Serving
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
    # system has no room for a thread, this thread waits. +how+: see Engine#drain.
    def drain(**how)
      return if draining?

      @draining = true
      @drain = Thread.new { finish(**how) }
    rescue ThreadError => e
      @service.log.drain_without_thread(e)
      finish(**how)
    end

    def finish(**how)
      finished = @engine.drain(@service.configuration.shutdown_timeout, **how)
      @service.log.drain_timed_out(@service.configuration.shutdown_timeout) unless finished || @stopped
    ensure
      @signals.push(:ENDED)
    end

    # Ends now and aborts all requests.
    def stop
      @stopped = true
      @engine.stop
      @signals.push(:ENDED)
    end
  end
end
