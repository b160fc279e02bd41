# frozen_string_literal: true

require "json"

module Fairlead
  module Cable
    module Extended
      # For Extended::Socket: its session moves with the client, with the id that the client knows.
      module Moving
        # --- in the old process

        # Streams on hold start before.
        def on_handover(client)
          start_held unless restoring?
          super
        end

        def session_to_move
          JSON.generate(sid: sid, streams: @starts.to_move, restored: @restored || [], presences: presences_to_move)
        end

        # --- in the new process

        def begin_again(client, moved)
          @moved_session = JSON.parse(moved.session)
          @session = Session.new(@env["REMOTE_ADDR"], @moved_session["sid"])
          @moved_streams = @moved_session["streams"].group_by(&:first)
          @restored = @moved_session["restored"]
          @welcomed = true
          super
        end

        def subscribing_again(identifier, &block)
          subscribing { @starts.start_again(@moved_streams.delete(identifier), &block) }
        end

        def subscribed_again
          @session.save(*state)
          @moved_session["presences"].each { |identifier, stream, id, info| join_again(identifier, stream, id, info) }
          leave_others
          report_presences
          @moved_session = @moved_streams = nil
        end

        # True for a client that has left one process and has not come to another one yet.
        def on_the_way? = !(moved || @moved_session).nil?

        private

        def moves? = super && !restoring?

        def leave
          Transients.forget(self)
          Presence::Exchange.current.moved(sid) if @presence.any?
          super
        end

        # Streams of members, with the id and the info of this client.
        def presences_to_move
          @presence.filter_map do |identifier, channel|
            stream = connection.subscriptions.channel_of(identifier)&.presence_stream
            member = Presence::Exchange.current.member(sid, channel)
            [identifier, stream, *member] if stream && member
          end
        end

        # A client that has joined after it subscribed.
        def join_again(identifier, stream, id, info)
          channel = connection.subscriptions.channel_of(identifier)
          return if channel.nil? || @presence.key?(identifier)

          channel.join_presence(stream, id: id, info: info)
        end

        # Leaves the streams of subscriptions that the new code has rejected.
        def leave_others
          channels = @moved_session["presences"].map { |_, stream| Sockets.channel(connection.pubsub, stream) }
          (channels - @presence.values).each { |channel| Presence::Exchange.current.leave(sid, channel) }
        end

        # Members may have come and gone in between.
        def report_presences
          @presence.each_key { |identifier| Presence.report(self, connection.subscriptions.channel_of(identifier)) }
        end
      end
    end
  end
end
