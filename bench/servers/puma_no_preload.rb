# frozen_string_literal: true

require_relative "puma"

module Bench
  module Servers
    # Puma without preload: each worker loads the application.
    class PumaNoPreload < Puma
      def name
        "puma-no-preload"
      end

      def gem_name
        "puma"
      end

      def runs?(shape, scenario)
        scenario.memory? && !shape.single?
      end

      def note(_shape)
        "`#{settings}`"
      end

      private

      def configuration(site) = site.write("puma.rb", settings)

      def settings = "preload_app! false"
    end
  end
end
