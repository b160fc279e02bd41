# frozen_string_literal: true

require_relative "puma_no_preload"

module Bench
  module Servers
    # Puma that loads the application before it forks its workers. It is not its default if `-w` sets their number.
    class PumaPreload < PumaNoPreload
      def name
        "puma-preload"
      end

      private

      def settings = "preload_app!"
    end
  end
end
