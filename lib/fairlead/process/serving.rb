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

    def draining? = !@drain.nil?

    # Ends once everything that has arrived is finished. A thread waits for that, so that signals are still handled.
    # +delay+, +retire+: see Engine#drain.
    def drain(delay: 0, retire: false)
      @drain ||= Thread.new do
        finished = @engine.drain(@service.configuration.shutdown_timeout, delay: delay, retire: retire)
        @service.log.drain_timed_out(@service.configuration.shutdown_timeout) unless finished || @stopped
      ensure
        @signals.push(:ENDED)
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
