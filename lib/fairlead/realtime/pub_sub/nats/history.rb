# frozen_string_literal: true

module Fairlead
  module PubSub
    class NATS
      # Reads the stream, on a connection of its own. A position is the time at which the stream was created, and the number of a
      # message in it.
      class History
        POSITION = /\A([0-9a-z]+)\.(\d+)\z/

        # The block connects.
        def initialize(stream, subjects, patience, &open)
          @stream = stream
          @subjects = subjects
          @patience = patience
          @open = open
          @lock = Mutex.new
        end

        def position
          with_jetstream { |jetstream| shown(info(jetstream)) }
        end

        # Returns nil if messages may have been deleted since that position.
        def since(channel, position)
          epoch, number = position.match(POSITION)&.captures
          with_jetstream do |jetstream|
            info = info(jetstream)
            number = number.to_i
            next unless epoch == epoch(info) && number <= info.state[:last_seq] && info.state[:first_seq] <= number + 1
            next [] if number == info.state[:last_seq]

            messages = read(jetstream, @subjects.subject(channel), number + 1)
            messages.map { |message| [message.data.b, "#{epoch}.#{message.metadata.sequence.stream}"] } if messages.size < @stream.limits[:messages]
          end
        end

        def close
          @lock.synchronize do
            @session&.close
            @session = nil
          end
        end

        private

        # Opens another connection after a failure.
        def with_jetstream
          yield session.client.jetstream(timeout: @patience)
        rescue ::NATS::Timeout, ::NATS::IO::Error, SystemCallError, IOError
          close
          raise
        end

        def session
          @lock.synchronize do
            @session = nil if @session && !@session.usable?
            next @session if @session

            opened = @open.call
            @stream.create(opened.client, @patience)
            @session = opened
          end
        end

        def info(jetstream) = jetstream.stream_info(@stream.name)
        def epoch(info) = (info.created.to_r * ::NATS::NANOSECONDS).to_i.to_s(36)
        def shown(info) = "#{epoch(info)}.#{info.state[:last_seq]}"

        def read(jetstream, subject, first)
          consumer = { deliver_policy: "by_start_sequence", opt_start_seq: first, ack_policy: "explicit", max_ack_pending: -1 }
          subscription = jetstream.subscribe(subject, stream: @stream.name, config: consumer)
          info = subscription.consumer_info
          Array.new(info.num_pending + info.delivered.consumer_seq) { subscription.next_msg(timeout: @patience) }
        ensure
          subscription && end_consumer(jetstream, subscription)
        end

        def end_consumer(jetstream, subscription)
          subscription.unsubscribe
          jetstream.delete_consumer(@stream.name, subscription.jsi.consumer)
        rescue ::NATS::Error
          nil # NATS deletes it soon
        end
      end
    end
  end
end
