# frozen_string_literal: true

require "uri"

module Fairlead
  module PubSub
    class Broker
      # The URL of a broker. Its name, and the errors about it, consist of parts that cannot hold a password.
      class Address
        # +url+: as given. +name+: for the log.
        attr_reader :url, :name

        # +broker+: its name, for errors. +schemes+: the permitted ones.
        #
        # @raise [ArgumentError] if the URL is invalid
        def initialize(url, broker, schemes)
          raise ArgumentError, "the URL of #{broker} is a String, not a #{url.class}" unless url.is_a?(String)

          @url = url
          @broker = broker
          @schemes = schemes
          @uri = parse
          @name = unix? ? "unix://#{@uri.path}" : "#{@uri.scheme}://#{@uri.host}#{":#{@uri.port}" if @uri.port}"
          freeze
        end

        def unix? = @uri.scheme == "unix"

        private

        def parse
          uri = URI(@url)
          raise ArgumentError, "the URL of #{@broker} must begin with #{choices}" unless @schemes.include?(uri.scheme)

          refuse if uri.opaque || [uri.path, uri.query, uri.fragment].any? { |part| part&.include?("@") }
          uri
        rescue URI::Error
          refuse
        end

        def choices = @schemes.map { |scheme| "#{scheme}:" }.join(", ").sub(/, (\S+)\z/, ' or \1')

        # Without a cause: the cause's message has the whole URL.
        def refuse
          raise ArgumentError, "the URL of #{@broker} is invalid; special characters of a password have to be percent-encoded (%40 for @), " \
                               "or give it as password:", cause: nil
        end
      end
    end
  end
end
