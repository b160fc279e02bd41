# frozen_string_literal: true

require "socket"

module Fairlead
  module Test
    # The socket for notifications to systemd, made by a test.
    class NotifySocket
      # Messages received so far, and the descriptors that came with them.
      attr_reader :messages, :ios

      # +name+: a path, or "@name" for an abstract socket.
      def initialize(name)
        @socket = Socket.new(:UNIX, :DGRAM)
        @socket.bind(Addrinfo.unix(name.sub(/\A@/, "\0"), :DGRAM))
        @messages = []
        @ios = []
      end

      # Reads the waiting messages.
      def read
        loop do
          text, _, _, *controls = @socket.recvmsg_nonblock(4096, 0, nil, scm_rights: true, exception: false)
          break self if text == :wait_readable

          @messages << text
          @ios.concat(controls.flat_map { |control| control.unix_rights || [] })
        end
      end

      # Returns the lines of all messages, except STATUS= and WATCHDOG=.
      def events = read.messages.flat_map(&:lines).map(&:chomp).grep_v(/\A(?:STATUS|WATCHDOG|MONOTONIC_USEC)=/)

      def statuses = read.messages.grep(/\ASTATUS=/).map { |text| text.delete_prefix("STATUS=") }

      def close = [@socket, *@ios].each(&:close)
    end
  end
end
