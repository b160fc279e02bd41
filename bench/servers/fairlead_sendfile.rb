# frozen_string_literal: true

require_relative "fairlead"

module Bench
  module Servers
    # Fairlead with an application that names a file, in the field x-sendfile, and has no body.
    class FairleadSendfile < Fairlead
      def name
        "fairlead-sendfile"
      end

      def way
        :sendfile
      end

      def note(_shape)
        "`--sendfile-root`; the application sends `x-sendfile`"
      end

      private

      def options(site)
        ["--sendfile-root", site.path("public")]
      end
    end
  end
end
