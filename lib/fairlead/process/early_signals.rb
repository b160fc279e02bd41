# frozen_string_literal: true

module Fairlead
  # TERM and INT between the start of the command and the handlers of the server. They raise as they do by default, so that
  # everything is cleaned up, with one exception: while a file of Fairlead is being loaded, or RubyGems is at work, the signal
  # waits. An exception there leaves half a file loaded, and RubyGems reports an error of its own.
  module EarlySignals
    NAMES = %w[INT TERM].freeze

    # How long a signal waits until it is looked at again, in seconds.
    PAUSE = 0.01

    # Set by a hot restart, which ignores HUP until the new program handles it: tells that it is not nohup that does.
    HELD_BACK = "FAIRLEAD_HUP"

    # Notes a HUP, for the server that is about to start.
    NOTE = proc { @hung_up = true }

    # The folder of Fairlead's own files.
    OWN = __dir__.delete_suffix("process").freeze

    class << self
      # Sets the handlers. A signal that is ignored stays ignored.
      def trap
        NAMES.each do |name|
          previous = Signal.trap(name) { loading? ? again(name) : raise(SignalException, "SIG#{name}") }
          Signal.trap(name, "IGNORE") if previous == "IGNORE"
        end
        hold_back
      end

      # From now on a HUP waits for the server's handler, if a hot restart has started this program. Without one, it goes on ending it.
      def hold_back(environment = ENV)
        Signal.trap("HUP", &NOTE) if environment.delete(HELD_BACK)
      end

      # Whether a HUP has waited, which it does not do any more.
      def hung_up!
        hung_up = @hung_up
        @hung_up = false
        hung_up
      end

      # Waits until no signal waits, so that none is lost when the process forks or gets another program. Raises as the signal does.
      def settle = @again&.join

      private

      # In the trap, which runs on top of the frames of the main thread.
      def loading?
        frames = caller_locations(2)
        frames.first&.path.to_s.include?("/rubygems/") ||
          frames.any? { |frame| frame.label == "<top (required)>" && frame.path.start_with?(OWN) }
      end

      def again(name)
        @again = Thread.new do
          sleep(PAUSE)
          Process.kill(name, Process.pid)
        end
      end
    end
  end
end
