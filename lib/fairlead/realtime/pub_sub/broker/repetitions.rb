# frozen_string_literal: true

module Fairlead
  module PubSub
    class Broker
      # Finds the copies of a message that a broker sends for several matching subscriptions, one after the other. A message is a
      # copy if it equals the last one and has come for another subscription. If it comes for the same subscription again, it has
      # been published again.
      class Repetitions
        # +source+: the subscription, any object.
        def copy?(source, channel, message)
          publication = [channel, message]
          return false.tap { start(source, publication) } if publication != @last || @sources.include?(source)

          @sources << source
          true
        end

        # Something else has come in between.
        def forget
          @last = nil
        end

        private

        def start(source, publication)
          @last = publication
          @sources = [source]
        end
      end
    end
  end
end
