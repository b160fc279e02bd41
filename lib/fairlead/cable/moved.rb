# frozen_string_literal: true

module Fairlead
  module Cable
    # The part of a connection that moves to another process: its sub-protocol and its subscriptions. Rails makes all else again.
    class Moved
      # As of Handover::State.
      FORMAT = 1

      # Numbers of fields.
      PROTOCOL = 1
      IDENTIFIER = 2
      SIGNED_IDENTIFIER = 3
      POSITION = 4
      SESSION = 5
      LEFT = 6

      # Returns nil if the format is unknown.
      def self.unpack(bytes)
        fields = Handover::Fields.unpack(FORMAT, bytes) or return
        found = fields.group_by(&:first).transform_values { |pairs| pairs.map { |_, text| text.force_encoding(Encoding::UTF_8) } }
        new(protocol: found[PROTOCOL]&.first, identifiers: found.fetch(IDENTIFIER, []), signed: found.fetch(SIGNED_IDENTIFIER, []),
            position: found[POSITION]&.first, session: found[SESSION]&.first, left: found[LEFT]&.first.to_f)
      end

      # The sub-protocol, or nil.
      attr_reader :protocol

      # The identifiers of Rails' subscriptions, in order, and of the server's own, which it has confirmed without Rails.
      attr_reader :identifiers, :signed

      # The position at the end of the connection in the old process, if there is a history.
      attr_reader :position

      # The session of Extended::Socket, or nil.
      attr_reader :session

      # The time of that end, by the clock that all processes of the machine share.
      attr_reader :left

      def initialize(protocol:, identifiers:, signed: [], position: nil, session: nil, left: Clock.now)
        @protocol = protocol
        @identifiers = identifiers
        @signed = signed
        @position = position
        @session = session
        @left = left
      end

      def pack
        one = [[PROTOCOL, protocol], [POSITION, position], [SESSION, session], [LEFT, left.to_s]].reject { |_, text| text.nil? }
        Handover::Fields.pack(FORMAT, one + identifiers.map { |id| [IDENTIFIER, id] } + signed.map { |id| [SIGNED_IDENTIFIER, id] })
      end
    end
  end
end
