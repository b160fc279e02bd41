# frozen_string_literal: true

module Fairlead
  # Listeners that were open before this program started: listeners that the supervisor shares, or listeners of systemd (socket
  # activation, or its store of descriptors). Each binding takes the listeners at its address; the rest are closed.
  class Inherited
    # systemd's variables and its first descriptor: sd_listen_fds(3).
    SYSTEMD = %w[LISTEN_FDS LISTEN_PID LISTEN_FDNAMES].freeze
    FIRST = 3

    class << self
      # Adopts the descriptors in the environment, and removes the variables: they are for this process only.
      def take(environment = ENV)
        count, pid, = SYSTEMD.map { |name| environment.delete(name) }
        new(of_systemd(count.to_i, pid.to_i))
      end

      # The listeners that the supervisor shares: +ios+, and the addresses of +bindings+ in the same order. An empty address is
      # unknown.
      def shared(ios, bindings)
        new(ios.zip(bindings).map do |io, binding|
          io.autoclose = false
          Listener.adopt(io.fileno, (binding unless binding.empty?), shared: true)
        end)
      end

      private

      def of_systemd(count, pid)
        return [] unless pid == Process.pid

        (FIRST...(FIRST + count)).map { |descriptor| Listener.adopt(descriptor, kept: true) }
      end
    end

    def initialize(listeners = [])
      @listeners = listeners
      @activated = listeners.reject(&:binding)
    end

    # True if systemd has passed listeners.
    def activated? = @activated.any?

    # True if there is a listener at the address of +binding+.
    def covers?(binding) = @listeners.any? { |listener| binding.covers?(listener) }

    # Takes the listeners at the address of +binding+; none if it must be opened.
    def take_for(binding)
      take { |listener| binding.covers?(listener) }
    end

    # Takes the remaining listeners of systemd.
    def take_activated = take { |listener| @activated.include?(listener) }

    # Closes the remaining listeners, and returns them.
    def close = take { true }.each(&:remove)

    private

    def take(&block)
      taken, @listeners = @listeners.partition(&block)
      taken
    end
  end
end
