# frozen_string_literal: true

begin
  require "pg"
rescue LoadError
  raise LoadError, "Fairlead::PubSub::Postgres needs the gem pg: add it to the Gemfile"
end

module Fairlead
  module PubSub
    # Carries messages between machines through PostgreSQL (LISTEN and NOTIFY), with the gem pg; {Broker} has the guarantees:
    #
    #   Fairlead::PubSub.default = Fairlead::PubSub::Postgres.new("postgres://user:password@10.0.0.5/app")
    #
    # The engine does not use the application's connections: a message is sent at once, and not when a transaction of the application
    # commits. Publish after the commit if subscribers read data that the transaction has written.
    #
    # A notification takes 8,000 bytes. A longer message goes into the table +fairlead_messages+, and a notification names its row. The
    # table is unlogged, and rows end after a minute; it is created when it is first needed.
    class Postgres < Broker
      autoload :Connection, "fairlead/realtime/pub_sub/postgres/connection"
      autoload :Envelope, "fairlead/realtime/pub_sub/postgres/envelope"
      autoload :Listening, "fairlead/realtime/pub_sub/postgres/listening"
      autoload :LongMessages, "fairlead/realtime/pub_sub/postgres/long_messages"
      autoload :Sender, "fairlead/realtime/pub_sub/postgres/sender"

      # Connects when it is first used.
      #
      # @param url [String] postgres: or postgresql:, as libpq takes it
      # @param patterns [Boolean] carries subscriptions to patterns, too. PostgreSQL has none, so each process then receives all
      #   messages. All servers need the same value
      # @param options [Hash] parameters of libpq, for example +password+ or +sslmode+
      # @raise [ArgumentError] if the URL is invalid
      def initialize(url, patterns: false, **options)
        given = parse(url)
        @patterns = patterns
        @options = { connect_timeout: 2, **given, **options, application_name: options[:application_name] || "fairlead" }
        super("PostgreSQL at #{@options[:host] || "its default socket"}#{":#{@options[:port]}" if @options[:port]}")
      end

      private

      # The parameters in a URL. Messages of libpq may have parts of the password.
      def parse(url)
        raise ArgumentError, "the URL of a PostgreSQL server is a String, not a #{url.class}" unless url.is_a?(String)
        raise ArgumentError, "the URL of a PostgreSQL server must begin with postgres: or postgresql:" unless url.match?(%r{\Apostgres(?:ql)?://})

        PG::Connection.conninfo_parse(url).filter_map { |entry| [entry[:keyword].to_sym, entry[:val]] if entry[:val] }.to_h
      rescue PG::Error
        raise ArgumentError, "the URL of a PostgreSQL server is invalid; special characters of a password have to be percent-encoded " \
                             "(%40 for @), or give it as password:", cause: nil
      end

      def entry(to, match)
        return [:channel, Envelope.channel(to, shared: @patterns)] if match.nil? || @patterns

        raise Refused, "PostgreSQL has no patterns; create the engine with patterns: true, on all servers"
      end

      def open_sender = Sender.new(Connection.new(@options), shared: @patterns)
      def open_listening(listener) = Listening.new(Connection.new(@options), listener, patience)
    end
  end
end
