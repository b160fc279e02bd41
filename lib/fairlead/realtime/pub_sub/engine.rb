# frozen_string_literal: true

module Fairlead
  module PubSub
    # Carries messages beyond what this server reaches by itself. Subclasses override what they need. An attached engine is
    # told once of each channel that its process subscribes to, however many subscribers there are, and hands in what
    # comes from outside with `Fairlead.publish(channel, message, false)`.
    #
    # Whoever subscribes waits until the engine has been told, so it should not take long. What it raises is logged.
    # Channels are binary Strings.
    class Engine
      # The first subscriber of +to+ has come. +match+: nil for a channel, :redis for a glob pattern, :subject for one of
      # tokens.
      def subscribe(_to, _match) = true

      # The last one has gone.
      def unsubscribe(_to, _match) = true

      # Sends a message on its way; false when that is known to fail.
      def publish(_to, _message) = false
    end
  end
end
