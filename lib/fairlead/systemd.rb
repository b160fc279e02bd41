# frozen_string_literal: true

require "socket"

module Fairlead
  # What systemd is told, and given to keep: the protocol of sd_notify(3) over its socket, without a gem. A message that cannot
  # be sent is lost; the server does not depend on it.
  class Systemd
    autoload :Reporter, "fairlead/systemd/reporter"

    # The variables that systemd sets, and Puma's that makes the server ignore them.
    SOCKET = "NOTIFY_SOCKET"
    WATCHDOG = %w[WATCHDOG_USEC WATCHDOG_PID].freeze
    SKIP = "PUMA_SKIP_SYSTEMD"

    # The name of the listeners in systemd's store of descriptors.
    NAME = "fairlead"

    class << self
      # The systemd that watches this process, or nil. The variables stay: a hot restart needs them again.
      def from(environment = ENV)
        name = environment[SOCKET].to_s
        return unless name.match?(%r{\A[/@].}) && !environment.key?(SKIP)

        new(name, watchdog: watchdog(*environment.values_at(*WATCHDOG)))
      end

      private

      # In seconds.
      def watchdog(microseconds, pid)
        return unless microseconds.to_i.positive? && [nil, Process.pid.to_s].include?(pid)

        microseconds.to_i / 1_000_000.0
      end
    end

    # After how many seconds without a sign of life systemd ends the service; nil if it never does.
    attr_reader :watchdog

    # +name+: the path of the socket, or "@name" for an abstract one.
    def initialize(name, watchdog: nil)
      @address = Addrinfo.unix(name.sub(/\A@/, "\0"), :DGRAM)
      @socket = Socket.new(:UNIX, :DGRAM)
      @watchdog = watchdog
    end

    def ready = notify("READY=1")

    # The time tells systemd to which of its requests this is the answer.
    def reloading = notify("RELOADING=1", "MONOTONIC_USEC=#{Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond)}")

    def stopping = notify("STOPPING=1")

    # One line, which `systemctl status` shows.
    def status(text) = notify("STATUS=#{text}")

    def alive = notify("WATCHDOG=1")

    # Gives it sockets to keep. It passes them to the next start of the service, unless that has been stopped in between.
    def store(ios)
      ios.each { |io| notify("FDSTORE=1", "FDNAME=#{NAME}", "FDPOLL=0", io: io) }
    end

    def close = @socket.close

    private

    def notify(*lines, io: nil)
      rights = io ? [Socket::AncillaryData.unix_rights(io)] : []
      @socket.sendmsg_nonblock(lines.join("\n"), 0, @address, *rights, exception: false) != :wait_writable
    rescue SystemCallError, IOError
      false
    end
  end
end
