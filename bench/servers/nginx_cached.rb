# frozen_string_literal: true

require_relative "nginx"

module Bench
  module Servers
    # nginx that keeps files open and for a minute does not check them for changes.
    class NginxCached < Nginx
      def name
        "nginx-cached"
      end

      private

      def file_cache
        "open_file_cache max=1000"
      end
    end
  end
end
