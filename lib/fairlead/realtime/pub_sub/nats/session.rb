# frozen_string_literal: true

module Fairlead
  module PubSub
    class NATS
      # A connection to NATS. It does not connect again: its owner opens another one. A fence is a message to the connection itself;
      # when it comes back, NATS has handled everything before it.
      class Session
        # The gem sends no pings of its own; fences take their place.
        OPTIONS = { reconnect: false, ping_interval: 86_400, close_timeout: 1, name: "fairlead" }.freeze

        # Most messages that wait in a process.
        MOST_MESSAGES = 65_536

        attr_reader :client

        # The block gets errors after which the connection still works.
        def initialize(url, options, patience, &problem)
          @arrivals = Arrivals.new
          @problem = problem
          @client = Client.new
          @client.on_error { |error| note(error) }
          @client.connect(url, { connect_timeout: patience, **OPTIONS, **options })
          @inbox = @client.new_inbox
          @fence = "#{@inbox}.fence"
          subscribe("#{@inbox}.*")
        rescue StandardError
          @client&.close
          raise
        end

        # Replaces the block.
        def on_problem(&block)
          @problem = block
        end

        # Subscribes; messages are taken with #pop.
        def subscribe(subject)
          raise IOError, "the connection has ended" unless usable?

          subscription = @client.subscribe(subject, pending_msgs_limit: MOST_MESSAGES, pending_bytes_limit: Float::INFINITY)
          subscription.synchronize do
            early = subscription.pending_queue
            subscription.pending_queue = @arrivals
            @arrivals << early.pop until early.empty?
          end
          subscription
        end

        def fence = @client.publish(@fence, "")
        def fence?(message) = message.subject == @fence

        # The subject for the reply to a message with that number.
        def reply_subject(number) = "#{@inbox}.#{number}"

        # The number of the message that this one replies to, or nil.
        def reply_number(message)
          message.subject.delete_prefix("#{@inbox}.")[/\A\d+\z/]&.to_i if message.subject.start_with?(@inbox)
        end

        def pop(seconds) = @arrivals.pop(seconds)
        def max_payload = @client.server_info[:max_payload] || Float::INFINITY
        def usable? = @client.connected? && !@arrivals.failed?

        def break_off = @client.break_off

        def close
          @arrivals.fail(IOError.new("the connection was closed"))
          @client.close
        end

        private

        def note(error)
          case error
          when Client::Violation, ::NATS::IO::SlowConsumer then @problem&.call(error)
          else @arrivals.fail(error)
          end
        end
      end
    end
  end
end
