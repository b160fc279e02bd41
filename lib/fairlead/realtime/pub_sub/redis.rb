# frozen_string_literal: true

begin
  require "redis"
rescue LoadError
  raise LoadError, "Fairlead::PubSub::Redis needs the gem redis: add it to the Gemfile"
end

module Fairlead
  module PubSub
    # Carries messages between machines through Redis or Valkey, with the gem redis; {Broker} has the guarantees:
    #
    #   Fairlead::PubSub.default = Fairlead::PubSub::Redis.new("redis://:password@10.0.0.5:6379")
    #
    # Redis has no patterns of tokens, so they become globs. These match a little more; messages that match no subscription are
    # dropped in this process.
    class Redis < Broker
      autoload :Listening, "fairlead/realtime/pub_sub/redis/listening"
      autoload :Sender, "fairlead/realtime/pub_sub/redis/sender"
      autoload :Wire, "fairlead/realtime/pub_sub/redis/wire"

      SCHEMES = %w[redis rediss unix].freeze

      # Connects when it is first used.
      #
      # @param url [String] redis:, rediss: or unix:
      # @param options [Hash] options of Redis.new, for example +password+, +ssl_params+ or +sentinels+
      # @raise [ArgumentError] if the URL is invalid
      def initialize(url, **options)
        address = Address.new(url, "a Redis server", SCHEMES)
        @options = { url: url, timeout: TIMEOUT, **options, reconnect_attempts: 0 }
        @options[:tcp_keepalive] ||= 60 if Wire.classic? && !address.unix? # later versions do this by default
        super("Redis at #{address.name}", patience: @options[:read_timeout] || @options[:timeout])
        ::Redis.new(**@options)
      rescue ArgumentError => e
        raise ArgumentError, address ? e.message.gsub(url, address.name) : e.message, cause: nil
      end

      private

      def entry(to, match)
        case match
        when nil then [:channel, to]
        when :redis then [:pattern, to]
        when :subject then [:pattern, glob(to)]
        end
      end

      def glob(subject)
        subject.gsub(/[\[\]?\\]/n) { |special| "\\#{special}" }.sub(/(\A|\.)>\z/n, "\\1*")
      end

      def open_sender = Sender.open(@options, patience)
      def open_listening(listener) = Listening.new(Wire.open(@options), listener)
    end
  end
end
