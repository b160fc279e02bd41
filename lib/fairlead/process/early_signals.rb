# frozen_string_literal: true

module Fairlead
  # TERM and INT between the start of the command and the handlers of the server. They raise as they do by default, so that
  # everything is cleaned up, with one exception: while a file of Fairlead is being loaded, or RubyGems is at work, the signal
  # waits. An exception there would leave half a file loaded, and RubyGems would report its own error.
  module EarlySignals
    NAMES = %w[INT TERM].freeze

    # Seconds until a waiting signal is tried again.
    PAUSE = 0.01

    # The folder of Fairlead's own files.
    OWN = __dir__.delete_suffix("process").freeze

    class << self
      # Sets the handlers. A signal that is ignored stays ignored.
      def trap
        NAMES.each do |name|
          previous = Signal.trap(name) { loading? ? again(name) : raise(SignalException, "SIG#{name}") }
          Signal.trap(name, "IGNORE") if previous == "IGNORE"
        end
      end

      # Waits until no signal is pending, so that none is lost when the process forks or executes another program. Raises as the
      # signal does.
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
