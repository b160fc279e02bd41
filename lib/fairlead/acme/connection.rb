# frozen_string_literal: true

require "json"
require "net/http"
require "openssl"
require "time"
require "uri"

module Fairlead
  module Acme
    # The way to an authority: requests over HTTPS. Raises a Problem if there is no way.
    class Connection
      # How long it may take to connect, and to answer, in seconds.
      CONNECT_TIMEOUT = 15
      READ_TIMEOUT = 45

      # What is sent (RFC 8555 §6.2).
      CONTENT_TYPE = "application/jose+json"

      FAILURES = [SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError, Net::HTTPBadResponse, Net::ProtocolError].freeze

      # What has come back. +body+: a Hash, or the text of what is not JSON.
      Response = Struct.new(:status, :headers, :body) do
        def success? = status.between?(200, 299)

        # Seconds, or nil; RFC 9110 §10.2.3.
        def retry_after
          text = headers["retry-after"] or return
          seconds = Integer(text, 10, exception: false) || (Time.httpdate(text) - Time.now).ceil
          seconds if seconds.positive?
        rescue ArgumentError
          nil
        end
      end

      # +ca+: as in Order.
      def initialize(ca: nil)
        @ca = ca
        @servers = {}
      end

      # +method+: "GET", "HEAD" or "POST". +text+: what is posted.
      def request(method, url, text = nil, accept: nil)
        uri = URI.parse(url)
        raise Problem.new("malformed", "the authority names the address #{url}, which is not https") unless uri.is_a?(URI::HTTPS)

        read(server(uri).request(message(method, uri, text, accept)))
      rescue URI::InvalidURIError
        raise Problem.new("malformed", "the authority names the address #{url}, which is none")
      rescue *FAILURES => e
        raise Problem.new("connection", "cannot reach #{uri.host}:#{uri.port}: #{e.message}")
      end

      def close
        @servers.each_value { |server| server.finish if server.started? }
        @servers.clear
      end

      private

      def server(uri)
        @servers[[uri.host, uri.port]] ||= Net::HTTP.new(uri.host, uri.port).tap do |http|
          http.use_ssl = true
          http.ca_file = @ca if @ca
          http.open_timeout = CONNECT_TIMEOUT
          http.read_timeout = READ_TIMEOUT
          http.start
        end
      end

      def message(method, uri, text, accept)
        fields = { "user-agent" => "fairlead/#{VERSION} (ruby #{RUBY_VERSION})" }
        fields["accept"] = accept if accept
        fields["content-type"] = CONTENT_TYPE if text
        Net::HTTPGenericRequest.new(method, !text.nil?, method != "HEAD", uri, fields).tap { |message| message.body = text if text }
      end

      def read(response)
        body = response.body.to_s
        body = JSON.parse(body) if response["content-type"].to_s.match?(%r{\Aapplication/(?:problem\+)?json\b})
        Response.new(Integer(response.code, 10), response, body)
      rescue JSON::ParserError
        raise Problem.new("malformed", "the authority has sent something that is no JSON")
      end
    end
  end
end
