# frozen_string_literal: true

begin
  require "nats/client"
rescue LoadError
  raise LoadError, "Fairlead::PubSub::NATS needs the gem nats-pure: add it to the Gemfile"
end

module Fairlead
  module PubSub
    # Carries messages between machines through NATS, with the gem nats-pure; {Broker} has the guarantees:
    #
    #   Fairlead::PubSub.default = Fairlead::PubSub::NATS.new("nats://user:password@10.0.0.5:4222,nats://10.0.0.6:4222")
    #
    # A channel becomes a subject below +prefix+, and its dots separate tokens, as in NATS. A pattern of tokens stays one. A glob
    # becomes a subject that matches more; messages that match no subscription are dropped in this process.
    #
    # With +history+, JetStream keeps the last messages of each channel; see {#history}.
    class NATS < Broker
      autoload :Arrivals, "fairlead/realtime/pub_sub/nats/arrivals"
      autoload :Client, "fairlead/realtime/pub_sub/nats/client"
      autoload :History, "fairlead/realtime/pub_sub/nats/history"
      autoload :Listening, "fairlead/realtime/pub_sub/nats/listening"
      autoload :Sender, "fairlead/realtime/pub_sub/nats/sender"
      autoload :Session, "fairlead/realtime/pub_sub/nats/session"
      autoload :Stream, "fairlead/realtime/pub_sub/nats/stream"
      autoload :Subjects, "fairlead/realtime/pub_sub/nats/subjects"

      SCHEMES = %w[nats tls].freeze

      # The limits of a history.
      HISTORY = { messages: 100, seconds: 300, bytes: 64 * 1024 * 1024 }.freeze

      # Connects when it is first used.
      #
      # @param url [String] nats: or tls:, or several, separated by commas
      # @param prefix [String] the first tokens of all subjects, for each application another one
      # @param history [Boolean, Hash] true, or limits: +messages+ of each channel (100), +seconds+ (300), +bytes+ of all channels
      #   (64 MiB)
      # @param options [Hash] options of NATS.connect, for example +user+, +pass+, +tls+ or +user_credentials+
      # @raise [ArgumentError] if the URL is invalid
      def initialize(url, prefix: "fairlead", history: false, **options)
        raise ArgumentError, "the URL of a NATS server is a String, not a #{url.class}" unless url.is_a?(String)

        addresses = url.split(",", -1).map { |part| Address.new(part.strip, "a NATS server", SCHEMES) }
        raise ArgumentError, "the URL of a NATS server is empty; give one like nats://127.0.0.1:4222" if addresses.empty?

        super("NATS at #{addresses.map(&:name).join(",")}")
        @url = addresses.map(&:url).join(",")
        @options = options
        @subjects = Subjects.new(prefix)
        @stream = Stream.new(@subjects, HISTORY.merge(history == true ? {} : history)) if history
      end

      # The newest position of all channels, for a later {#history}.
      #
      # @param _channel [String]
      # @return [String] "epoch.offset"
      # @raise [Refused] without the option +history+
      # @raise [Exception] if NATS cannot be reached
      def position(_channel = nil) = kept.position

      # The messages of a channel since a position.
      #
      # @param channel [String]
      # @param since [String] a position
      # @return [Array<Array(String, String)>, nil] each message with its position; nil if the position is too old or unknown
      # @raise [Refused] without the option +history+
      # @raise [Exception] if NATS cannot be reached
      def history(channel, since) = kept.since(channel.b, since)

      # (see Broker#close)
      def close
        super
        @lock.synchronize do
          @history&.close if @history_pid == Process.pid
          @history = nil
        end
      end

      private

      def entry(to, match) = [:subject, @subjects.entry(to, match)]
      def open_sender = Sender.new(open_session, @subjects, @stream, patience)
      def open_listening(listener) = Listening.new(open_session, @subjects, listener)
      def open_session = Session.new(@url, @options, patience)

      def kept
        raise Refused, "this engine keeps no history; create it with history: true" unless @stream

        @lock.synchronize do
          @history = nil unless @history_pid == Process.pid
          @history_pid = Process.pid
          @history ||= History.new(@stream, @subjects, patience) { open_session }
        end
      end
    end
  end
end
