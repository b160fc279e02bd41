# frozen_string_literal: true

require "net/http"
require "uri"

module Bench
  module Drive
    # A browser's state for an application: its cookies, and the token that its forms must send.
    class Session
      def initialize(url)
        answer = Net::HTTP.get_response(URI(url))
        @token = answer.body.to_s[/name="authenticity_token" value="([^"]+)"/, 1]
        raise Error, "#{url} has no form with a token: #{answer.code}" unless @token

        @cookie = answer.get_fields("set-cookie").map { |cookie| cookie[/\A[^;]+/] }.join("; ")
      end

      # Header fields of every request.
      def fields
        { "cookie" => @cookie, "content-type" => "application/x-www-form-urlencoded" }
      end

      # A form as the body of a request.
      def form(fields)
        URI.encode_www_form("authenticity_token" => @token, **fields)
      end
    end
  end
end
