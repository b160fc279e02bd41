# frozen_string_literal: true

module Fairlead
  module Cable
    # The streams of one client. Messages of plain streams go to the client without running Ruby; the handlers of other streams
    # run in the client's turn. A client has one subscription for each channel, which several handlers may share.
    class ClientStreams
      # A stream that the server delivers to the subscription +identifier+.
      Plain = Struct.new(:socket, :channel, :identifier) do
        def close = socket.unstream(channel, identifier)
      end

      # A stream that calls a handler.
      Handled = Struct.new(:streams, :channel, :handler) do
        def close = streams.remove(self)
      end

      def initialize(socket)
        @socket = socket
        @handled = {} # channel => [Handled, …]
        @lock = Mutex.new
      end

      # Returns the stream, and false if messages since the position of the page are lost. Both methods return nil if the client
      # is closed, or has too many subscriptions.
      def plain(channel, identifier, page: nil)
        messages = @socket.stream(channel, identifier, page: page)
        [Plain.new(@socket, channel, identifier), messages] unless messages.nil?
      end

      def handled(channel, handler)
        stream = Handled.new(self, channel, handler)
        @lock.synchronize do
          own = @handled[channel]
          @handled[channel] = [*own, stream]
          next if own || subscribe(channel)

          @handled.delete(channel)
          return nil
        end
        stream
      end

      # --- for Handled

      def remove(stream)
        @lock.synchronize do
          own = @handled[stream.channel] or next
          rest = own.reject { |one| one.equal?(stream) }
          next @handled[stream.channel] = rest if rest.any?

          @handled.delete(stream.channel)
          @socket.unsubscribe(stream.channel)
        end
      end

      private

      def subscribe(channel)
        @socket.client.subscribe(channel) do |_, message|
          @handled[channel]&.each { |stream| @socket.turn { stream.handler.call(message) } }
        end
      end
    end
  end
end
