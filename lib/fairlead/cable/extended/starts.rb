# frozen_string_literal: true

module Fairlead
  module Cable
    module Extended
      # The positions at which the streams of a client start, by the identifier of their subscription. A stream is on hold until it
      # is known what the client has already. It has a position all the same, from which it starts otherwise, so nothing is lost.
      class Starts
        # +opened+: the position when the subscription was made; +position+: the start, which may be older; +page+: the sealed position of
        # the client's page, or nil.
        Stream = Struct.new(:position, :is_held, :opened, :page)

        ATTEMPTS = 3

        def initialize(socket)
          @socket = socket
          @streams = {} # identifier => { channel => Stream }
        end

        # Streams that start in the block are on hold. +position+: their start, unless it is now. +request+: what the client asks for.
        def hold(identifier, position = nil, request = nil)
          @holding = identifier
          @start = position
          @request = request
          yield
        ensure
          @holding = @start = @request = nil
        end

        # +page+: the sealed position of a page, for a client without a newer one. Returns the number of messages, false if some are lost,
        # and nil if the client cannot have the stream.
        def start(channel, identifier, page)
          position, opened = @former&.[](channel)
          return continue_former(channel, identifier, position, opened) if position

          opened = Extended.position
          of_page = position_of_page(channel, page) unless @start || @request&.names?(channel)
          position = @start || of_page || opened
          is_held = @holding == identifier && !position.nil?
          messages = is_held ? 0 : @socket.open_stream(channel, identifier, position)
          return if messages.nil?

          (@streams[identifier] ||= {})[channel] = Stream.new(messages ? position : opened, is_held, opened, page)
          of_page == false ? false : messages
        end

        # The streams for another process: an Array for each.
        def to_move
          @streams.flat_map { |identifier, streams| streams.map { |channel, stream| [identifier, channel, stream.position, stream.opened] } }
        end

        # Streams that start in the block have started in another process. +streams+: the ones of their identifier, as #to_move has returned
        # them there, or nil.
        def start_again(streams)
          @former = (streams || []).to_h { |_, channel, *positions| [channel, positions] }
          yield
        ensure
          @former = nil
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

        def continue_former(channel, identifier, position, opened)
          messages = @socket.open_stream(channel, identifier, nil)
          return if messages.nil?

          (@streams[identifier] ||= {})[channel] = Stream.new(position, false, opened)
          messages
        end

        def continue(channel, identifier, stream, request)
          return start_held(channel, identifier, stream, request) if stream.is_held

          wanted, is_complete = request&.position(channel)
          return is_complete != false unless wanted

          send_missing(channel, identifier, stream, wanted) && is_complete
        end

        def start_held(channel, identifier, stream, request)
          stream.is_held = false
          is_complete = request && open_since(channel, identifier, stream, request)
          return is_complete unless is_complete.nil?

          is_whole = @socket.open_stream(channel, identifier, stream.position, whole: true)
          @socket.open_stream(channel, identifier, stream.position = stream.opened) if is_whole == false
          is_whole && request&.position(channel).nil?
        end

        # Returns nil if the stream cannot start where the client asks for. The messages since a time are as many as there are: while they
        # are looked up, the oldest one may give way. A client that does not name the stream has received no message of it. It may ask for
        # the messages since its last ping, so it also gets the ones since its page was made.
        def open_since(channel, identifier, stream, request)
          of_page = position_of_page(channel, stream.page) || nil unless request.names?(channel)
          (request.names?(channel) ? 1 : ATTEMPTS).times do
            wanted, is_complete = request.position(channel)
            return unless wanted

            wanted = [wanted, stream.position, *of_page].min_by { |position| offset(position) } unless request.names?(channel)
            next unless @socket.open_stream(channel, identifier, wanted, whole: true)

            stream.position = wanted
            return is_complete
          end
          nil
        end

        # Sends messages before the start of a stream: later ones have been delivered.
        def send_missing(channel, identifier, stream, wanted)
          return false unless stream.position

          count = @socket.client.send(:send_missing, channel, identifier, wanted, offset(stream.position))
          stream.position = wanted if count != false && count.positive?
          count
        end

        # Nil without a page, and false if messages since then are lost.
        def position_of_page(channel, page) = (@socket.client.send(:position_of_page, channel, page) if page)

        def offset(position) = position[/\d+\z/].to_i
      end
    end
  end
end
