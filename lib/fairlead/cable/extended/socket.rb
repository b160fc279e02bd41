# frozen_string_literal: true

require "json"
require "fairlead/cable/socket"
require_relative "allowance"
require_relative "history_request"
require_relative "moving"
require_relative "restoration"
require_relative "session"
require_relative "starts"
require_relative "transients"

module Fairlead
  module Cable
    module Extended
      # A native WebSocket with AnyCable's sub-protocol. Rails transmits its own messages, to which this adds fields.
      class Socket < Cable::Socket
        include Moving

        # Rails transmits it first to a connection that it accepts.
        WELCOME = '{"type":"welcome"}'

        # Seconds that the streams of a restored session wait for the client to ask for their history. AnyCable's clients do so
        # at once.
        PATIENCE = 3

        # Seconds until the next attempt if too many messages wait for the client's turn.
        RETRY = 0.5

        # For Transients: channel => { identifier => true }.
        attr_reader :heard

        def initialize(...)
          super
          @session = Session.new(@env["REMOTE_ADDR"])
          @starts = Starts.new(self)
          @presence = {} # identifier => channel of the members
          @heard = {}
          @others = {} # streams of another adapter: [channel, identifier] => true
        end

        def sid = @session.id

        def transmit(message)
          return @restoration.add(message) if @restoration
          return super unless message == WELCOME && !@welcomed

          @welcomed = true
          welcome
        end

        # Rails has transmitted the reason.
        def close(...)
          restoration = @restoration
          @restoration = nil
          restoration&.transmissions&.each { |message| transmit(message) }
          super
        end

        def on_close(client)
          Transients.forget(self)
          Presence::Exchange.current.ended(sid) if @presence.any? || on_the_way?
          @session.save(*state, PubSub.position) if @welcomed && !@restoration && !on_the_way? # else the old session stays
        rescue StandardError => e # for example JSON::GeneratorError: an identifier that is not UTF-8
          connection.logger.error("Could not keep the session [#{e.class} - #{e.message}]")
        ensure
          super
        end

        # --- for Streams

        def stream(channel, identifier, page: nil) = @starts.start(channel, identifier, page)

        def unstream(channel, identifier)
          @starts.remove(channel, identifier)
          forget(channel, identifier)
          super
        end

        # --- for Channels

        # Notes a stream of another adapter.
        def hear(channel, identifier)
          @others[[channel, identifier]] = true
          Transients.add(self, channel, identifier)
        end

        def unhear(channel, identifier)
          forget(channel, identifier) if @others.delete([channel, identifier])
        end

        # --- for Starts

        # Delivers the messages of a channel, with the ones after a position. Returns false if some of them are lost, and nil if there is
        # no stream.
        # +whole+: then there is no stream, either.
        def open_stream(channel, identifier, position, whole: false)
          messages = client.stream(channel, identifier, position, extended: true, whole: whole)
          Transients.add(self, channel, identifier) unless messages.nil? || (whole && !messages)
          messages
        end

        # --- for Commands

        # Streams that start in the block wait for #catch_up.
        def hold(identifier, position = nil, request = nil, &block) = @starts.hold(identifier, position, request, &block)

        # True, once, if the subscription was restored. The client subscribes again if it had not received the confirmation.
        def restored?(identifier) = !@restored.nil? && !@restored.delete(identifier).nil?

        # Runs the block, which subscribes, and then the blocks of #afterwards.
        def subscribing
          former = @afterwards
          @afterwards = []
          yield
          @afterwards.each(&:call)
        ensure
          @afterwards = former
        end

        # Runs the block after the current subscription, if there is one.
        def afterwards(&block) = @afterwards ? @afterwards.push(block) : block.call

        # Delivers the history that a client asks for. Without a request, it starts what is on hold, and says only if messages are lost.
        def catch_up(identifier, request)
          complete = @starts.catch_up(identifier, request)
          send_json(identifier: identifier, type: complete ? "confirm_history" : "reject_history") if request || !complete
        end

        # Notes that a subscription was added or removed.
        def note(kind, identifier)
          @restored&.delete(identifier)
          @session.change(kind, identifier) { state }
        end

        # --- for Presence

        # The number of streams in which the client is a member.
        def presences = @presence.size

        # True if the client is a member.
        def present_in?(channel, identifier) = @presence[identifier] == channel

        # Notes that the client is a member, of one stream in each subscription. It gets the changes of the members.
        def present_in(channel, identifier)
          Presence.leave(self, identifier) unless present_in?(channel, identifier)
          @presence[identifier] = channel
          Transients.add(self, channel, identifier)
        end

        # Returns the channel of the members, if the client was one, and is not in another subscription.
        def absent_from(identifier)
          channel = @presence.delete(identifier) or return
          forget(channel, identifier)
          channel unless @presence.value?(channel)
        end

        # True while subscriptions of a former connection are made again.
        def restoring? = !@restoration.nil? || resuming?

        # --- for all

        def send_json(message) = transmit(JSON.generate(message))

        private

        # The state of the session: the connection's identifier and its subscriptions.
        def state = [connection.connection_identifier, connection.subscriptions.identifiers]

        # Transients that no stream and no membership needs any more.
        def forget(channel, identifier)
          return if present_in?(channel, identifier) || @starts.include?(channel, identifier) || @others.key?([channel, identifier])

          Transients.remove(self, channel, identifier)
        end

        def welcome
          restoration = Restoration.of(@env, connection)
          return send_json(type: "welcome", sid: sid) unless restoration

          @restoration = restoration
          soon(:restore)
        end

        # Runs a method in a turn of its own, as Rails runs commands.
        def soon(method)
          later(-> { work.invoke(self, method, connection: connection) }) || (alive? && Fairlead.run_after(RETRY) { soon(method) })
        end

        # A channel may end the thread.
        def restore
          @restoration&.continue(self) if alive?
        ensure
          go_on if @restoration && alive?
        end

        def go_on = @restoration.finished? ? continue_session : soon(:restore)

        def continue_session
          restoration = @restoration
          @restoration = nil
          @session.save(*state)
          @restored = restoration.identifiers.dup
          send_json(type: "welcome", sid: sid, restored: true, restored_ids: @restored)
          restoration.transmissions.each { |message| transmit(message) }
          Fairlead.run_after(PATIENCE) { soon(:start_held) }
        end

        def start_held = @starts.held.each { |identifier| catch_up(identifier, nil) }
      end
    end
  end
end
