# frozen_string_literal: true

module Fairlead
  module Cable
    module Extended
      # The positions at which the streams of a client start, by the identifier of their subscription. A stream is on hold until it
      # is known what the client has already. It has a position all the same, from which it starts otherwise, so nothing is lost.
      class Starts
        # +opened+: the position when the subscription was made; +position+: the start, which may be older.
        Stream = Struct.new(:position, :is_held, :opened)

        ATTEMPTS = 3

        def initialize(socket)
          @socket = socket
          @streams = {} # identifier => { channel => Stream }
        end

        # Streams that start in the block are on hold. +position+: their start, unless it is now.
        def hold(identifier, position = nil)
          @holding = identifier
          @start = position
          yield
        ensure
          @holding = @start = nil
        end

        # +page+: the sealed position of a page. Returns the number of its messages, false if some are lost, and nil if the client
        # cannot have the stream.
        def start(channel, identifier, page)
          opened = PubSub.position
          position = @start || opened
          is_held = @holding == identifier && !position.nil?
          messages = is_held ? 0 : @socket.open_stream(channel, identifier, nil, page: page)
          (@streams[identifier] ||= {})[channel] = Stream.new(position, is_held, opened) unless messages.nil?
          messages
        end

        def remove(channel, identifier)
          streams = @streams[identifier] or return
          streams.delete(channel)
          @streams.delete(identifier) if streams.empty?
        end

        def include?(channel, identifier) = @streams[identifier]&.key?(channel)

        # Yields channels and identifiers.
        def each
          @streams.each { |identifier, streams| streams.each_key { |channel| yield(channel, identifier) } }
        end

        # The identifiers with a stream on hold.
        def held = @streams.filter_map { |identifier, streams| identifier if streams.each_value.any?(&:is_held) }

        # Starts the streams on hold, and sends the messages that came before the start of other streams. Returns false if some
        # messages are lost.
        def catch_up(identifier, request)
          streams = @streams[identifier] || {}
          streams.map { |channel, stream| continue(channel, identifier, stream, request) }.all?
        end

        private

        def continue(channel, identifier, stream, request)
          return start_held(channel, identifier, stream, request) if stream.is_held

          wanted = request&.position(channel)
          wanted.nil? || (wanted && send_missing(channel, identifier, stream, wanted))
        end

        def start_held(channel, identifier, stream, request)
          stream.is_held = false
          return true if request && open_since(channel, identifier, stream, request)

          complete = @socket.open_stream(channel, identifier, stream.position, whole: true)
          @socket.open_stream(channel, identifier, stream.position = stream.opened) if complete == false
          complete && (request.nil? || !request.names?(channel))
        end

        # The messages since a time are as many as there are. While they are looked up, the oldest one may give way.
        def open_since(channel, identifier, stream, request)
          (request.names?(channel) ? 1 : ATTEMPTS).times do
            wanted = request.position(channel) or return false
            return stream.position = wanted if @socket.open_stream(channel, identifier, wanted, whole: true)
          end
          false
        end

        # Sends messages before the start of a stream: later ones have been delivered.
        def send_missing(channel, identifier, stream, wanted)
          past = stream.position && Extended.past(channel, wanted) or return false

          epoch, start = stream.position.split(".")
          head = %({"identifier":#{JSON.generate(identifier)},"message":)
          tail = %(,"stream_id":#{JSON.generate(channel)},"epoch":"#{epoch}","offset":)
          missing = past.take_while { |offset,| offset <= start.to_i }
          missing.each { |offset, _, message| @socket.transmit("#{head}#{message}#{tail}#{offset}}") }
          stream.position = wanted if missing.any?
          true
        end
      end
    end
  end
end
