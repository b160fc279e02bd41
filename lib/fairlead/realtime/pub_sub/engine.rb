# frozen_string_literal: true

module Fairlead
  module PubSub
    # Carries messages to and from other servers. Subclasses override the methods that they need. An attached engine is told
    # once of each channel that its process subscribes to, for any number of subscribers. It passes on incoming messages with
    # `Fairlead.publish(channel, message, false)`.
    #
    # The methods should return quickly, because subscribers and publishers wait for them; only {#wait_for} may take longer.
    # Exceptions are logged. Channels are binary Strings.
    class Engine
      # Called for the first subscriber of a channel in this process.
      #
      # @param _to [String] the channel or pattern
      # @param _match [nil, :redis, :subject] nil for a channel, :redis for a glob pattern, :subject for a pattern of tokens
      # @return [void]
      def subscribe(_to, _match) = true

      # Waits until messages of a channel arrive, for a second or so at most. Each thread that subscribes calls this after
      # {#subscribe}, without a lock, so a waiting thread delays no other.
      #
      # @param _to [String]
      # @param _match [nil, :redis, :subject]
      # @return [void]
      def wait_for(_to, _match) = nil

      # Called after the last subscriber has unsubscribed.
      #
      # @param _to [String]
      # @param _match [nil, :redis, :subject]
      # @return [void]
      def unsubscribe(_to, _match) = true

      # Sends a message.
      #
      # @param _to [String] the channel
      # @param _message [String]
      # @return [Boolean] false if this is known to fail
      def publish(_to, _message) = false
    end
  end
end
