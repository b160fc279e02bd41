# frozen_string_literal: true

module Fairlead
  class Systemd
    # Tells systemd what becomes of the server, as its status changes.
    #
    #   starting ──READY──▶ ready ──RELOADING──▶ restarting ──READY──▶ ready ──STOPPING──▶ draining
    class Reporter
      # How often the text of STATUS= may change, in seconds.
      INTERVAL = 1

      # +pulse+: a Control::Pulse, without whose sign of life the watchdog gets none.
      def initialize(systemd, pulse, counts: Stats.method(:to_h))
        @systemd = systemd
        @pulse = pulse
        @counts = counts
        @told = :starting
        @restart = @text = nil
      end

      # How often #look is to be called, in seconds.
      def interval = [INTERVAL, *(@systemd.watchdog && (@systemd.watchdog / 2))].min

      # Tells what has changed. +status+: the server's.
      def look(status)
        tell_restart(status) unless @told == :starting && status[:state] == :starting
        tell_state(status[:state])
        tell_text(status)
        @systemd.alive if @systemd.watchdog && @pulse.silent_for < interval
      end

      # The program is about to be replaced.
      def handing_over = tell_state(:restarting)

      # The server has ended.
      def ended
        tell_state(:draining)
        @systemd.close
      end

      private

      # A restart may begin and end between two looks.
      def tell_restart(status)
        at = status[:restart]&.fetch(:at)
        tell_state(:restarting) if at && at != @restart
        @restart = at
      end

      def tell_state(state)
        return if state == @told || @told == :draining

        @told = state
        case state
        when :ready then @systemd.ready
        when :restarting then @systemd.reloading
        when :draining then @systemd.stopping
        end
      end

      def tell_text(status)
        text = describe(status)
        @systemd.status(text) unless text == @text
        @text = text
      end

      # "ready: 2/2 workers, 1/10 threads busy, 0 requests waiting; last restart failed: config.ru:1: …"
      def describe(status)
        counts = @counts.call
        rows = status[:workers].zero? ? counts[:engines] : counts.fetch(:workers, [])
        workers = "#{status[:children].count { |child| child[:booted] }}/#{status[:workers]} workers, " if status[:workers].positive?
        "#{status[:state]}: #{workers}#{sum(rows, :busy_threads)}/#{sum(rows, :threads)} threads busy, #{sum(rows, :queued)} requests waiting" \
          "#{failure(status[:restart])}"
      end

      def sum(rows, name) = rows.sum { |row| row[name] }

      def failure(restart)
        "; last restart failed: #{restart[:error].to_s.lines.first.to_s.strip}" if restart && restart[:state] == :failed
      end
    end
  end
end
