# frozen_string_literal: true

module Fairlead
  module PubSub
    class Postgres
      # The table with messages that are too long for a notification. It is unlogged: it is empty after a crash of PostgreSQL, when
      # notifications are lost, too.
      class LongMessages
        # Seconds that a row is kept, and between two deletions.
        EXPIRY = 60
        INTERVAL = 10

        # Other processes may create it at the same time.
        CREATE = <<~SQL
          SELECT pg_advisory_xact_lock(hashtext('fairlead_messages'));
          CREATE UNLOGGED TABLE IF NOT EXISTS fairlead_messages (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea NOT NULL, created_at timestamptz NOT NULL DEFAULT now()
          )
        SQL
        INSERT = "INSERT INTO fairlead_messages (body) VALUES ($1::bytea) RETURNING id"
        SELECT = "SELECT encode(body, 'base64') FROM fairlead_messages WHERE id = $1"
        DELETE = "DELETE FROM fairlead_messages WHERE created_at < now() - make_interval(secs => $1)"

        def initialize(connection)
          @connection = connection
        end

        # Returns the id.
        #
        # @raise [Broker::Refused] if the user may not have such a table
        def add(body, seconds)
          id = Integer(insert(body, seconds), 10)
          delete_expired(seconds)
          id
        rescue PG::InsufficientPrivilege, PG::InvalidSchemaName => e
          raise Broker::Refused, "a message above #{Envelope::MOST_BYTES} bytes needs the table fairlead_messages; create it and grant INSERT, " \
                                 "SELECT and DELETE (#{Error.sum_up(e)})"
        end

        # Returns the body, or nil if it is not there any more.
        def [](id, seconds)
          @connection.run(SELECT, [id], seconds).first&.first&.unpack1("m")
        rescue PG::UndefinedTable, PG::InsufficientPrivilege, PG::DataException
          nil
        end

        private

        def insert(body, seconds)
          @connection.run(INSERT, [{ value: body, format: 1 }], seconds).first.first
        rescue PG::UndefinedTable
          @connection.run(CREATE, nil, seconds)
          @connection.run(INSERT, [{ value: body, format: 1 }], seconds).first.first
        end

        def delete_expired(seconds)
          return if @deleted_at && Clock.now - @deleted_at < INTERVAL

          @deleted_at = Clock.now
          @connection.run(DELETE, [EXPIRY], seconds)
        end
      end
    end
  end
end
