# frozen_string_literal: true

module Fairlead
  module PubSub
    class Postgres
      # The connection that receives messages. Two threads use it, one at a time.
      class Listening
        VERBS = { subscribe: "LISTEN", unsubscribe: "UNLISTEN" }.freeze

        def initialize(connection, listener, patience)
          @connection = connection
          @listener = listener
          @patience = patience
          @long_messages = LongMessages.new(connection)
          @lock = Mutex.new
        end

        def tell(batch)
          @lock.synchronize do
            @connection.run(statement(batch), nil, @patience)
            batch.items.each { @listener.confirmed }
            take_messages
          end
        end

        def receive(seconds)
          return false unless @connection.readable?(seconds)

          @lock.synchronize { take_messages }
          true
        end

        def break_off = @connection.break_off

        # Not while the other thread uses it.
        def close
          @connection.break_off
          @lock.synchronize { @connection.close }
        end

        private

        def statement(batch)
          return "SELECT 1" if batch.verb == :ping

          batch.names.map { |name| "#{VERBS.fetch(batch.verb)} #{@connection.quoted(name)}" }.join("; ")
        end

        # Other programs may notify the same channels.
        def take_messages
          @connection.notifications.each do |payload|
            content = Envelope.unpack(payload)
            content = fetched(content) if content&.id
            @listener.deliver(content.channel, content.message) if content
          end
        end

        def fetched(reference)
          body = @long_messages[reference.id, @patience]
          content = body && Envelope.content(reference.name_bytes, body)
          @listener.missed(1, "a long message is not in the table fairlead_messages any more") unless content
          content
        end
      end
    end
  end
end
