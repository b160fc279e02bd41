# frozen_string_literal: true

module Fairlead
  module Handover
    # The part of a client's env that moves with it: the Strings that describe its request. Objects stay behind, such as the session
    # that a middleware has put there.
    module Request
      # Entries besides the keys with a capital letter (RFC 3875): the request line, fields, the server, TLS.
      OTHERS = %w[rack.url_scheme fairlead.trace_id].freeze

      # The new process has values of its own, and the beginning of the request is long ago.
      LEFT_OUT = %w[SERVER_SOFTWARE GATEWAY_INTERFACE HTTP_X_REQUEST_START HTTP_X_QUEUE_START HTTP_X_MIDDLEWARE_START].freeze

      # Entries that the server makes of a request.
      OF_SERVER = /\A(?:(?:HTTP|SSL|SERVER|CONTENT)_.+|REQUEST_(?:METHOD|PATH|URI)
                    |GATEWAY_INTERFACE|HTTPS|PATH_INFO|QUERY_STRING|REMOTE_ADDR|SCRIPT_NAME)\z/x

      class << self
        # Pairs of a key and a value.
        def entries(env)
          env.select { |key, value| key.is_a?(String) && value.is_a?(String) && moves?(key) }.to_a
        end

        # Adds entries to an env. Their values are binary, as in the env of a request.
        def add(env, entries)
          entries.each { |key, value| env[-key.dup.force_encoding(Encoding::UTF_8)] = value }
          env
        end

        # Removes what middleware has put there. When it runs again, it must not find its former answers, such as REMOTE_USER.
        def forget_middleware(env) = env.delete_if { |key, _| key.is_a?(String) && key.match?(/\A[A-Z]/) && !key.match?(OF_SERVER) }

        private

        def moves?(key) = (key.match?(/\A[A-Z]/) && !LEFT_OUT.include?(key)) || OTHERS.include?(key)
      end
    end
  end
end
