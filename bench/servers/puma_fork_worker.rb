# frozen_string_literal: true

require_relative "puma_no_preload"

module Bench
  module Servers
    # Puma with fork_worker, after 1,000 requests.
    class PumaForkWorker < PumaNoPreload
      def name
        "puma-fork-worker"
      end

      private

      def settings = "fork_worker"
    end
  end
end
