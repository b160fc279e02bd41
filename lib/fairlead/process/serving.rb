# frozen_string_literal: true

module Fairlead
  # Serving until something ends it: what the only process and a worker have in common. The includer has @service,
  # @engine and @signals.
  #
  #   serving ──drain──▶ draining ──all done, or shutdown_timeout──▶ ended
  #      └──────stop──────────┴────────────stop────────────────────────▲
  module Serving
    private

    # Runs until the engine has ended. Yields each event that is none of its own, +io+ once when it is readable, and, if
    # there is a +heartbeat+, :HEARTBEAT at least every so many seconds.
    def serve(io = nil, heartbeat: nil, &handler)
      until @ended
        handler.call(:HEARTBEAT) if heartbeat
        @signals.wait(heartbeat, *[io].compact).each do |event|
          io = nil if event == io
          event == :ENDED ? @ended = true : handler.call(event)
        end
      end
      @drain&.join
    end

    def draining? = !@drain.nil?

    # Ends once everything that has arrived is finished. It waits in a thread of its own, so that a signal can still be heard.
    def drain
      @drain ||= Thread.new do
        finished = @engine.drain(@service.configuration.shutdown_timeout)
        @service.log.drain_timed_out(@service.configuration.shutdown_timeout) unless finished || @stopped
        @signals.push(:ENDED)
      end
    end

    # Ends now, whatever is under way.
    def stop
      @stopped = true
      @engine.stop
      @signals.push(:ENDED)
    end
  end
end
