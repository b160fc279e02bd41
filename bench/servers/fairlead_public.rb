# frozen_string_literal: true

require_relative "fairlead"

module Bench
  module Servers
    # Fairlead that serves a folder itself.
    class FairleadPublic < Fairlead
      def name
        "fairlead-public"
      end

      def way
        :public
      end

      def note(_shape)
        "`--public`, access log off"
      end

      private

      def options(site)
        ["--public", site.path("public")]
      end
    end
  end
end
