# frozen_string_literal: true

module Fairlead
  module Cable
    # For Socket: its client moves to another process. In the old process, Rails sees the end of the connection. In the new one, it sees
    # a client that connects and subscribes. The client sees neither.
    module Moving
      # For the class; see Handover::Resuming.
      module Taking
        include Handover::Resuming

        def take_over(client, state, app)
          moved = Moved.unpack(state) or return Handover.refuse_format
          Reconnection.new(client, moved, app).socket
        end
      end

      def self.included(base)
        super
        base.extend(Taking)
      end

      # The Moved of a client that is on its way.
      attr_reader :moved

      # --- in the old process

      # With another adapter, messages go through Rails: some would be lost, and the client would not know.
      def on_handover(client)
        return unless moves?

        left = Moved.new(protocol: protocol, identifiers: connection.subscriptions.identifiers, signed: client.send(:signed_identifiers),
                         position: PubSub.position, session: session_to_move)
        left.pack.tap { @left = left }
      end

      def handed_over
        @moved = @left
        leave
      end

      # --- in the new process

      # Continues the connection of a client, as #on_open begins one.
      def begin_again(client, moved)
        @client = client
        client.send(:begin_with_handler, self) # whatever happens, #on_close follows
        @alive = true
        @resumption = Resumption.new(self, moved)
        turn { target.on_open }
      ensure # as in #on_open
        close(Socket::REFUSED, "the application has not accepted the connection") if alive? && !accepted?
      end

      # Runs the next turn. Returns true if it was the last one.
      def resume
        resumption = @resumption
        resumption.continue if resumption && alive?
        return false if alive? && resumption && !resumption.finished?

        @resumption = nil
        true
      end

      # True while the subscriptions of the client are made again.
      def resuming? = !@resumption.nil?

      # --- for Extended::Socket

      # The session, as text.
      def session_to_move = nil

      # Runs the block, which makes a subscription again.
      def subscribing_again(_identifier) = yield

      # Called after the last subscription, in a turn.
      def subscribed_again; end

      private

      def moves? = alive? && accepted? && !resuming? && Sockets.own?(connection.pubsub) && channels_move?

      def channels_move?
        subscriptions = connection.subscriptions
        subscriptions.identifiers.all? { |identifier| subscriptions.channel_of(identifier).send(:moves?) }
      end

      # The streams of the client stay as they are.
      def leave
        @alive = false
        turn { target.on_close("", Socket::NO_STATUS) }
      end

      # True for what the client knows already.
      def known?(message) = resuming? && Thread.current.equal?(@running) && @resumption.known?(message)
    end
  end
end
