# frozen_string_literal: true

require_relative "puma_no_preload"

module Bench
  module Servers
    # Puma that prepares its memory for the fork of its workers.
    class PumaWarmup < PumaNoPreload
      def name
        "puma-warmup"
      end

      private

      # Ruby has Process.warmup since 3.3.
      def settings = "preload_app!; before_fork { #{Process.respond_to?(:warmup) ? "Process.warmup" : "GC.compact"} }"
    end
  end
end
