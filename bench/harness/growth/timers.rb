# frozen_string_literal: true

require "net/http"

module Bench
  module Growth
    # n timers of the application (Fairlead.run_after), due in an hour: the cost of adding, cancelling and running a timer
    # (bench/apps/growth.ru).
    class Timers
      # Timers that are added, and cancelled or run, beside the others.
      BESIDE = 2000
      # Timers of a request.
      AT_ONCE = 1000

      def warm_up(target)
        figures(target, 1000)
      end

      def figures(target, count)
        cost = Cost.new(target.running.group)
        adding = cost.once(count) { in_parts(count) { |part| ask(target, "add", part) } }
        idle, = cost.of_a_second
        memory = target.running.group.memory_kib / 1024.0
        beside = { "cancel" => "timer beside them that is cancelled, µs", "run" => "timer beside them that runs at once, µs" }
        found = beside.to_h { |what, name| [name, cost.each(BESIDE) { in_parts(BESIDE) { |part| ask(target, what, part) } }] }
        cancelling = cost.once(count) { in_parts(count) { |part| ask(target, "clear", part) } }
        { "to add one, µs" => adding, "to cancel one, µs" => cancelling, **found, "CPU of an idle second, µs" => idle, "memory, MiB" => memory }
      end

      private

      def in_parts(count)
        count.step(1, -AT_ONCE) { |left| yield [left, AT_ONCE].min }
      end

      def ask(target, what, count)
        response = Net::HTTP.get_response(URI(target.running.url("/timers?what=#{what}&count=#{count}")))
        raise Error, "timers failed: #{response.code} #{response.body}" unless response.is_a?(Net::HTTPSuccess)
      end
    end
  end
end
