# frozen_string_literal: true

require "uri"

module Fairlead
  module PubSub
    class Redis
      # The URL of a Redis server. Its name, and the errors about it, consist of parts that cannot hold a password.
      class Address
        SCHEMES = %w[redis rediss unix].freeze

        # +url+: as given. +name+: for the log.
        attr_reader :url, :name

        # @raise [ArgumentError] if the URL is invalid
        def initialize(url)
          raise ArgumentError, "the URL of a Redis server is a String, not a #{url.class}" unless url.is_a?(String)

          @url = url
          @uri = parse
          @name = unix? ? "unix://#{@uri.path}" : "#{@uri.scheme}://#{@uri.host}#{":#{@uri.port}" if @uri.port}"
          freeze
        end

        def unix? = @uri.scheme == "unix"

        private

        def parse
          uri = URI(@url)
          raise ArgumentError, "the URL of a Redis server must begin with redis:, rediss: or unix:" unless SCHEMES.include?(uri.scheme)

          refuse if uri.opaque || [uri.path, uri.query, uri.fragment].any? { |part| part&.include?("@") }
          uri
        rescue URI::Error
          refuse
        end

        # Without a cause: the cause's message has the whole URL.
        def refuse
          raise ArgumentError, "the URL of a Redis server is invalid; special characters of a password have to be percent-encoded (%40 for @), " \
                               "or give it as password:", cause: nil
        end
      end
    end
  end
end
