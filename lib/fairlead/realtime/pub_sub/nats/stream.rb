# frozen_string_literal: true

module Fairlead
  module PubSub
    class NATS
      # The stream of JetStream that keeps the last messages of each channel.
      class Stream
        attr_reader :name, :limits

        # +limits+: of NATS::HISTORY.
        def initialize(subjects, limits)
          @subjects = subjects
          @name = subjects.prefix.upcase.gsub(/[^A-Z0-9_-]/, "_")
          @limits = limits
        end

        # Creates it, or uses an existing one as it is.
        def create(client, patience)
          client.jetstream(timeout: patience).add_stream(
            name: name, subjects: [@subjects.all], storage: "memory", discard: "old", max_msgs_per_subject: limits.fetch(:messages),
            max_age: Integer(limits.fetch(:seconds) * ::NATS::NANOSECONDS), max_bytes: limits.fetch(:bytes)
          )
        rescue ::NATS::JetStream::Error::BadRequest => e
          raise unless e.err_code == NAME_IN_USE
        end

        # Code of JetStream's error for a stream with other limits.
        NAME_IN_USE = 10_058
        private_constant :NAME_IN_USE

        # The error in JetStream's reply to a message, or nil.
        def error(reply)
          error = JSON.parse(reply.data)["error"] if reply.data.start_with?("{")
          Broker::Refused.new("JetStream does not keep a message: #{error["description"]}") if error
        end
      end
    end
  end
end
