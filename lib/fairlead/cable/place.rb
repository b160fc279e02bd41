# frozen_string_literal: true

module Fairlead
  module Cable
    # The place of this process among the processes of a server.
    class Place
      # The bits of Native.place.
      DELIVERS = 1
      IN_SERVER = 2
      COPY = 4

      class << self
        # A process that has not loaded the extension belongs to no server.
        def current = new(Fairlead.autoload?(:Native) ? 0 : Native.place)
      end

      def initialize(bits)
        @bits = bits
      end

      # True if published messages get to the subscriptions of this process.
      def delivers? = @bits.anybits?(DELIVERS)

      # True if published messages get to a server: this process serves, or belongs to one.
      def server? = @bits.anybits?(DELIVERS | IN_SERVER)

      # True if the subscribers in this process are copies: a process that serves has forked it.
      def copy? = @bits.anybits?(COPY)
    end
  end
end
