# frozen_string_literal: true

module Fairlead
  module PubSub
    class Postgres
      # A connection with a deadline for each statement, which the gem pg does not offer.
      class Connection
        # +options+: of PG.connect.
        def initialize(options)
          @pg = PG.connect(options)
          @pg.internal_encoding = Encoding::UTF_8
          @pg.setnonblocking(true)
          @pg.set_notice_processor { nil } # the default writes them to standard error
        rescue StandardError
          @pg&.finish
          raise
        end

        # True if text in all of Unicode can be sent as it is.
        def unicode? = @pg.parameter_status("server_encoding") == "UTF8"

        # Executes a statement, or with no parameters several; returns the rows of the last one. No wait for PostgreSQL takes longer
        # than +seconds+.
        def run(sql, parameters, seconds)
          parameters ? @pg.send_query_params(sql, parameters) : @pg.send_query(sql)
          flush(seconds)
          results(seconds).each(&:check).last.values
        end

        # Waits until PostgreSQL has sent something. May be called while another thread runs a statement.
        def readable?(seconds) = !@pg.socket_io.wait_readable(seconds).nil?

        # The payloads of the notifications so far.
        def notifications
          @pg.consume_input
          payloads = []
          while (notification = @pg.notifies)
            payloads << notification[:extra]
          end
          payloads
        end

        def quoted(name) = @pg.quote_ident(name)

        # True if PostgreSQL has closed the connection, perhaps after a last message. Call this only while no statement runs.
        def ended?
          @pg.consume_input while readable?(0)
          false
        rescue PG::Error
          true
        end

        # Ends the connection for both sides, but keeps its descriptor, which another thread may wait for.
        def break_off
          @pg.socket_io.shutdown
        rescue StandardError
          nil # it has ended already
        end

        def close
          @pg.finish
        rescue PG::Error
          nil # it has ended already
        end

        private

        # All of them have to be taken, even if the first one is an error.
        def results(seconds)
          all = []
          loop do
            await(seconds)
            result = @pg.get_result or return all
            all << result
          end
        end

        # A long result may take longer, as long as bytes arrive.
        def await(seconds)
          while @pg.is_busy
            raise Broker::Silence, "PostgreSQL has not replied for #{seconds} s" unless readable?(seconds)

            @pg.consume_input
          end
        end

        def flush(seconds)
          @pg.socket_io.wait_writable(seconds) or raise Broker::Silence, "PostgreSQL has taken nothing for #{seconds} s" until @pg.flush
        end
      end
    end
  end
end
