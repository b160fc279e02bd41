# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # The connection that receives messages. One thread writes commands, another one reads.
      class Listening
        # The verb and kind of a batch => the command.
        COMMANDS = {
          %i[subscribe channel] => "SUBSCRIBE", %i[subscribe pattern] => "PSUBSCRIBE",
          %i[unsubscribe channel] => "UNSUBSCRIBE", %i[unsubscribe pattern] => "PUNSUBSCRIBE"
        }.freeze

        CONFIRMATIONS = %w[subscribe psubscribe unsubscribe punsubscribe pong PONG].freeze

        def initialize(wire, listener)
          @wire = wire
          @listener = listener
          @repetitions = Broker::Repetitions.new
        end

        def tell(batch)
          @wire.write(batch.verb == :ping ? ["PING"] : [COMMANDS.fetch([batch.verb, batch.kind]), *batch.names])
        end

        # Replies come in the order of the commands; messages in between.
        def receive(seconds)
          reply = @wire.read(seconds)
          kind, name, *rest = reply
          case kind
          when "message" then take(:channel, name.b, rest.last.b)
          when "pmessage" then take(name.b, rest.first.b, rest.last.b)
          when *CONFIRMATIONS then confirmed
          else refused(reply)
          end
          true
        rescue Broker::Silence
          false
        end

        def close = @wire.close
        alias break_off close

        private

        def confirmed
          @repetitions.forget
          @listener.confirmed
        end

        def refused(reply)
          raise(reply.is_a?(StandardError) ? reply : IOError.new("Redis sent what no command asked for")) unless Wire.refusal?(reply)

          @listener.refused(reply)
        end

        def take(source, channel, message)
          @listener.deliver(channel, message) unless @repetitions.copy?(source, channel, message)
        end
      end
    end
  end
end
