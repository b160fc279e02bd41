# frozen_string_literal: true

module Fairlead
  module PubSub
    class Postgres
      # The connection that publishes. A batch is one transaction, because commits of notifications wait for each other.
      class Sender
        # A notification does not survive a crash, so its commit needs not wait for the disk.
        NOTIFY = <<~SQL
          WITH settings AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
          SELECT pg_notify(channel, payload) FROM settings, unnest($1::text[], $2::text[]) AS message(channel, payload)
        SQL

        # Seconds after its last use within which a connection is used again without a check.
        RECENT = 0.01

        # +shared+: all channels are one in PostgreSQL.
        def initialize(connection, shared:)
          @connection = connection
          @shared = shared
          @unicode = connection.unicode?
          @long_messages = LongMessages.new(connection)
          @texts = PG::TextEncoder::Array.new
          @serial = 0
          @used = Clock.now
        end

        # Returns nil for each message that PostgreSQL has confirmed, and an exception for each refused one.
        def publish(batch, seconds)
          refusals = {}
          payloads = batch.filter_map do |publication|
            [Envelope.channel(publication.channel, shared: @shared), payload(publication, seconds)]
          rescue Broker::Refused => e
            refusals[publication] = e
            nil
          end
          notify(payloads, seconds)
          batch.map { |publication| refusals[publication] }
        end

        def usable? = Clock.now - @used <= RECENT || !@connection.ended?

        def close = @connection.close

        private

        def payload(publication, seconds)
          @serial += 1
          Envelope.pack(@serial, publication.channel, publication.message, unicode: @unicode) ||
            Envelope.pack_reference(@serial, publication.channel, @long_messages.add(publication.channel + publication.message.b, seconds))
        end

        def notify(payloads, seconds)
          @connection.run(NOTIFY, payloads.transpose.map { |texts| @texts.encode(texts) }, seconds) if payloads.any?
          @used = Clock.now
        end
      end
    end
  end
end
