# frozen_string_literal: true

module Fairlead
  module Test
    class Staying
      # A client that listens.
      class Listener
        include Waiting

        attr_reader :name, :ledger

        # +connection+: a WebSocket or an EventStream.
        def initialize(name, connection, publishers)
          @name = name
          @connection = connection
          @publishers = publishers
          @ledger = Ledger.new
          @wrong = []
        end

        def socket = @connection.socket

        # The first message may have come with the head of the response.
        def ready?
          take_messages unless @ready
          @ready
        end

        # True if it reads little.
        def slow? = false

        # The reason for the end of the connection; nil while it lasts.
        def over = @end

        def over? = !@end.nil?

        # Sends what is due.
        def act(_now); end

        def reads?(_now) = true

        # Sends nothing new from now on.
        def rest; end

        # True if nothing is expected but publications.
        def rested? = true

        def read
          @connection.take_in
          take_messages
          @end ||= ending if @connection.over?
        rescue WebSocket::Malformed, EventStream::Malformed, SystemCallError, IOError => e
          @end = e.message
        end

        def faults(published)
          about(over? ? ["ended: #{@end}"] : []) + about(@ledger.lost(published)) + mistakes
        end

        # Faults that not even the end of the connection excuses.
        def mistakes = about(@wrong.first(3) + @ledger.wrong)

        def drop
          socket.close
        rescue SystemCallError, IOError
          nil
        end

        private

        def about(faults) = faults.map { |fault| "#{name}: #{fault}" }

        def ending = @connection.closing&.join(" ") || "cut off"

        def take_messages
          now = monotonic
          texts = messages
          texts.each { |text| take(text, now) }
        end

        def take(text, now)
          return become_ready if text == "ready"

          text.match?(/\A(?:mail|kept) /) ? @ledger.record(text, now) : take_other(text)
        end

        def become_ready
          @ledger.begin(@publishers.begun)
          @ready = true
        end

        def take_other(text) = @wrong << "got #{text[0, 80].inspect}"
      end

      # An event stream.
      class Stream < Listener
        private

        def messages = @connection.events.slice!(0..).map(&:data)

        def ending = @connection.end_of_stream.to_s
      end

      # A WebSocket that also sends messages, some at a time, and checks the answers: one for each, in order. If +slow+, it asks for
      # long answers, and reads little. If +large+, it always is in the middle of a long message.
      class Talker < Listener
        # Seconds between two messages; messages without an answer.
        PAUSE = 0.1
        AHEAD = 3

        FLOOD = 300_000
        LONG = 60_000
        PIECE = 3_000

        def initialize(name, connection, publishers, slow: false, large: false)
          super(name, connection, publishers)
          @flood = slow ? FLOOD : 0
          @size = large ? LONG : 40
          @slow = slow
          @sent = @answered = 0
          @unsent = "".b
          @due = monotonic
        end

        def act(now)
          return unless ready? && now >= @due

          @due = now + PAUSE
          begin_message if @unsent.empty? && @sent - @answered < (@slow ? 1 : AHEAD) && !@rests
          socket.write(@unsent.slice!(0, PIECE)) unless @unsent.empty?
        rescue SystemCallError, IOError => e
          @end = e.message
        end

        def slow? = @slow

        def reads?(now) = !@slow || @rests || now % 0.6 < 0.2

        def rest = @rests = true

        def rested? = @unsent.empty? && @answered == @sent

        def faults(published)
          super + about(rested? || over? ? [] : ["#{@sent - @answered} messages without an answer"])
        end

        private

        def messages = @connection.messages.slice!(0..).map(&:last)

        def begin_message
          @sent += 1
          text = "#{@sent} #{@size} #{@flood} ".ljust(@size, "x")
          deflate = @connection.deflate
          text = deflate.compress(text) if deflate
          @unsent << WebSocket::Frames.build(1, text, rsv: deflate ? 4 : 0)
        end

        def take_other(text)
          @answered += 1
          expected = "answer #{@answered} #{@answered} true#{" " * @flood}"
          @wrong << "answer #{text[0, 80].inspect} instead of #{expected[0, 80].inspect}" unless text == expected
        end
      end

      KINDS = {
        plain: [Talker, {}],
        deflated: [Talker, { deflate: true }],
        large: [Talker, { large: true }],
        large_deflated: [Talker, { large: true, deflate: true }],
        slow: [Talker, { slow: true }],
        tls12: [Talker, { tls: "1.2" }],
        tls13: [Talker, { tls: "1.3" }],
        stream: [Stream, {}],
        tls_stream: [Stream, { tls: "1.3" }]
      }.freeze
    end
  end
end
