# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # A connection on which one thread may write commands while another reads the replies. The gem redis opens it, and so
      # handles addresses, TLS, passwords and sentinels. Its own methods would repeat a PUBLISH that Redis may have executed.
      class Wire
        # With redis-rb 4.
        class Classic < Wire
          def initialize(client)
            super()
            client.connect
            @connection = client.connection
          end

          def write(command) = @connection.write(command)

          def read(seconds)
            raise IOError, "the connection was closed" unless @connection.connected?

            @connection.timeout = seconds
            @connection.read
          rescue ::Redis::TimeoutError
            raise Broker::Silence, silence(seconds)
          rescue Errno::ECONNRESET, EOFError
            raise IOError, "Redis has closed the connection"
          end

          def close = @connection.disconnect
        end

        # With redis-rb 5 and newer, which are based on redis-client.
        class Modern < Wire
          def initialize(client)
            super()
            @connection = client.pubsub
          end

          def write(command) = @connection.call_v(command)
          def read(seconds) = @connection.next_event(seconds) || raise(Broker::Silence, silence(seconds))
          def close = @connection.close
        end

        class << self
          # Connects. +options+: of Redis.new. The other drivers cannot read and write at the same time.
          def open(options)
            return Classic.new(::Redis.new(**options, driver: :ruby)._client) if classic?

            Modern.new(::Redis.new(**options, driver: :ruby, protocol: 2)._client)
          end

          # True if the reply says that this one command is not permitted; all others may be.
          def refusal?(reply) = reply.is_a?(StandardError) && reply.message.start_with?("NOPERM")

          def classic? = ::Redis::VERSION.to_i < 5
        end

        # True if Redis has closed the connection. Call this only while no reply is due.
        def ended?
          read(GLANCE)
          true
        rescue Broker::Silence
          false
        rescue StandardError
          true
        end

        # Seconds; 0 would mean no limit.
        GLANCE = 0.000_001
        private_constant :GLANCE

        private

        def silence(seconds) = "Redis has sent nothing for #{seconds} s"
      end
    end
  end
end
