# frozen_string_literal: true

module Fairlead
  module PubSub
    # What somebody wants to subscribe to, in whichever form it was said.
    class Subscription
      # What `match:` may be => what engines are told.
      MATCHES = { nil => nil, false => nil, true => :redis, redis: :redis, glob: :redis, subject: :subject }.freeze

      # What engines are told => what the extension calls it.
      NATIVE = { nil => 0, redis: 1, subject: 2 }.freeze

      class << self
        # From (name), (name, options), (name, true) or options alone, which say `to:` or `channel:`. Options that it does
        # not know are ignored.
        def parse(name, options, keywords, block = nil)
          return parse(nil, name, keywords, block) if name.is_a?(Hash)

          options = { match: options } unless options.is_a?(Hash)
          options = options.merge(keywords)
          name = options.fetch(:to) { options[:channel] } if name.nil?
          new(name, match: options[:match], binary: options[:as] == :binary, callable: options[:handler] || block)
        end

        # The channel of that name: its bytes. Raises ArgumentError for none, TypeError for what names nothing.
        def channel(name)
          case name
          when String then name.b
          when Symbol then name.name.b
          when nil, false then raise ArgumentError, "a channel needs a name"
          else raise TypeError, "the name of a channel is a String or a Symbol, not #{name.class}"
          end
        end
      end

      # +name+: as it was given. +channel+: its bytes. +match+: nil, :redis or :subject. +callable+: what takes the messages,
      # or nil.
      attr_reader :name, :channel, :match, :callable

      def initialize(name, match: nil, binary: false, callable: nil)
        @name = name
        @channel = self.class.channel(name)
        @match = MATCHES.fetch(match) { raise ArgumentError, "match: is :redis, :glob or :subject, not #{match.inspect}" }
        @binary = binary
        @callable = callable
        raise ArgumentError, "a handler needs a method call" unless callable.nil? || callable.respond_to?(:call)
      end

      def binary? = @binary

      def native_match = NATIVE.fetch(match)
    end
  end
end
