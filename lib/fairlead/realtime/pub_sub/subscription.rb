# frozen_string_literal: true

module Fairlead
  module PubSub
    # The arguments of subscribe and unsubscribe, in any of their forms.
    class Subscription
      # The argument `match:` => the kind of match for engines.
      MATCHES = { nil => nil, false => nil, true => :redis, redis: :redis, glob: :redis, subject: :subject }.freeze

      # The kind of match for engines => its number in the extension.
      NATIVE = { nil => 0, redis: 1, subject: 2 }.freeze

      # The beginning of the server's own channels.
      OWN = "fairlead/"

      class << self
        # Takes (name), (name, options), (name, true) or only options with `to:` or `channel:`. Ignores unknown options.
        def parse(name, options, keywords, block = nil)
          return parse(nil, name, keywords, block) if name.is_a?(Hash)

          options = { match: options } unless options.is_a?(Hash)
          options = options.merge(keywords)
          name = options.fetch(:to) { options[:channel] } if name.nil?
          new(name, match: options[:match], binary: options[:as] == :binary, callable: options[:handler] || block, since: options[:since])
        end

        # The channel of that name: its bytes. Raises ArgumentError if there is no name, TypeError if it is not a String or a
        # Symbol.
        def channel(name)
          case name
          when String then name.b
          when Symbol then name.name.b
          when nil, false then raise ArgumentError, "a channel needs a name"
          else raise TypeError, "the name of a channel is a String or a Symbol, not #{name.class}"
          end
        end

        # The same for the application, which cannot use the server's own channels: strangers may choose its names.
        def channel_of_app(name)
          channel = channel(name)
          raise ArgumentError, "channels that begin with #{OWN} belong to the server; choose another name" if channel.start_with?(OWN)

          channel
        end

        # One subscription that calls all of these, which have the same name. The one of the application comes last: it may raise.
        def together(subscriptions)
          return subscriptions.first if subscriptions.one?

          all = subscriptions.sort_by { |one| one.owner ? 0 : 1 }
          new(all.last.name, match: all.filter_map(&:match).first, callable: lambda { |channel, message|
            all.each { |one| one.callable.call(channel, message) if one.match || one.channel == channel.b }
          })
        end
      end

      # +since+: a position in the history, or nil.
      # +name+: as given. +channel+: its bytes. +match+: nil, :redis or :subject. +callable+: is called with the messages, or
      # nil. +owner+: nil for the application, and a Symbol for a part of Fairlead that subscribes beside it.
      attr_reader :name, :channel, :match, :callable, :since, :owner

      def initialize(name, match: nil, binary: false, callable: nil, since: nil, owner: nil)
        @name = name
        @owner = owner
        @channel = owner ? self.class.channel(name) : self.class.channel_of_app(name)
        @match = MATCHES.fetch(match) { raise ArgumentError, "match: is :redis, :glob or :subject, not #{match.inspect}" }
        @binary = binary
        @callable = callable
        @since = since
        raise ArgumentError, "since: has no meaning for a pattern or with a block" if since && (@match || callable)

        raise ArgumentError, "a handler needs a method call" unless callable.nil? || callable.respond_to?(:call)
      end

      def binary? = @binary

      def native_match = NATIVE.fetch(match)
    end
  end
end
