# frozen_string_literal: true

module Fairlead
  module Control
    # The statistics of the server that this process belongs to, in Puma's form. The process that has the status answers itself;
    # others ask its control server. Without one, a worker knows what the scoreboard has, which is neither processes nor times.
    module OwnStats
      # The environment variable that tells the next program of a process without workers the address and the token.
      VARIABLE = "FAIRLEAD_CONTROL"

      class << self
        # Symbol keys; empty where no server runs.
        def to_h
          desk = Launcher.current&.desk
          return desk.puma_stats if desk&.own_process?

          client ? ask(client) : of_scoreboard
        end

        # For the control server of the server that this process belongs to; nil if there is none.
        def client = Launcher.current&.desk&.client || @client

        # Notes where the control server can be reached, and its secret; nothing if there is none.
        def know(url = nil, token = nil)
          @client = url && Client.new(url, token)
        end

        # The value of the variable. A path may contain spaces, but an address has no line break.
        def tell(url, token) = [url, token].join("\n")

        # Takes the variable from the environment: the address and the token, or nothing.
        def take(environment) = environment.delete(VARIABLE).to_s.split("\n", 2)

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
