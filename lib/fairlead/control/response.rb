# frozen_string_literal: true

module Fairlead
  module Control
    # A response of the control server.
    Response = Struct.new(:status, :type, :body) do
      class << self
        # +value+: what JSON.generate takes.
        def json(value, status: 200)
          require "json"
          new(status, "application/json", JSON.generate(shown(value)))
        end

        # Puma's word that a command was accepted, to the last space.
        def ok = new(200, "application/json", '{ "status": "ok" }')

        def text(status, body) = new(status, "text/plain", body)

        private

        # JSON is UTF-8, and paths may be anything.
        def shown(value)
          case value
          when Hash then value.transform_values { |one| shown(one) }
          when Array then value.map { |one| shown(one) }
          when String then SystemText.shown(value)
          else value
          end
        end
      end

      # As it goes on the wire.
      def to_s
        "HTTP/1.1 #{status} #{self.class::REASONS.fetch(status)}\r\n" \
          "content-type: #{type}\r\ncache-control: no-store\r\nconnection: close\r\ncontent-length: #{body.bytesize}\r\n\r\n#{body}"
      end
    end

    Response::REASONS = {
      200 => "OK", 400 => "Bad Request", 403 => "Forbidden", 404 => "Not Found", 408 => "Request Timeout",
      431 => "Request Header Fields Too Large", 500 => "Internal Server Error", 503 => "Service Unavailable"
    }.freeze
  end
end
