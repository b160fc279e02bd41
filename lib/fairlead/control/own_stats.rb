# frozen_string_literal: true

module Fairlead
  module Control
    # The statistics of the server that this process belongs to, in Puma's form. The control server has them. Without one, a
    # process knows only the scoreboard, which has neither processes nor times.
    module OwnStats
      class << self
        # Symbol keys; empty without a server.
        def to_h
          client ? ask(client) : of_scoreboard
        end

        # For the control server of the server that this process belongs to; nil if there is none.
        attr_reader :client

        # Notes the address of the control server and its secret; nothing without one.
        def know(url = nil, token = nil)
          @client = url && Client.new(url, token)
        end

        private

        def ask(client)
          require "json"
          JSON.parse(client.get("stats"), symbolize_names: true)
        rescue Client::Failure
          of_scoreboard
        end

        def of_scoreboard
          configuration = Launcher.current&.configuration or return {}
          return PumaStats.of_engine(Stats.to_h, max_threads: configuration.max_threads) unless configuration.supervised?

          PumaStats.of_workers(Stats.to_h, max_threads: configuration.max_threads)
        end
      end
    end
  end
end
