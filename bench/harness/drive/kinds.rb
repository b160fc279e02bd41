# frozen_string_literal: true

require_relative "requests"

module Bench
  module Drive
    # Clients of two kinds at the same time, each with its own path. The statistics are the first kind's; the statistics
    # of the other kind are beside them (Measurement#beside).
    class Kinds < Requests
      # Some of the clients: their name, their path, the work of the app for them, as steps of `[:sleep, seconds]` or
      # `[:compute, seconds]`, and their share of all clients, as a number of parts.
      Kind = Struct.new(:name, :path, :steps, :parts, keyword_init: true)

      # Seconds that both kinds run before counting begins, so that none is counted alone.
      LEAD = 0.5

      # mixes: the two kinds, by the mix in a shape's name (nil if there is only one).
      def initialize(answer_bytes:, mixes:)
        super(answer_bytes: answer_bytes)
        @mixes = mixes
      end

      def units
        main, beside = kinds(@mixes.keys.first).map(&:name)
        { many: "#{main} requests", one: "#{main} request", beside: beside }
      end

      # A description of a shape's clients, for headings.
      def clients(shape)
        numbers(shape).map { |kind, number| "#{number} #{kind.name}" }.join(", ")
      end

      # The app that performs the steps of the kinds.
      def app
        steps = @mixes.values.flatten.to_h { |kind| [kind.path, kind.steps] }
        "#{File.read(File.join(ROOT, "bench/apps/steps.ru"))}\nSTEPS = #{steps.inspect}.freeze\n"
      end

      # The workload of a shape's clients, for a simulation.
      def workload(shape)
        numbers(shape).map { |kind, number| Simulation::Kind.new(kind.name, number, kind.steps) }
      end

      def extent(_shape, seconds)
        Simulation::Extent.new(lead: LEAD, seconds: seconds)
      end

      def warm_up(target, seconds)
        load_all(target, seconds, 0)
      end

      def measure(target, seconds)
        found, beside = load_all(target, seconds, LEAD)
        found.beside = beside
        found.errors = found.errors.merge(beside.errors) { |_, a, b| a + b }
        found
      end

      def problem(found)
        return "no #{units[:beside]} request got a response" if found.beside.requests.zero?

        super || super(found.beside)
      end

      def summary(found)
        beside = found.beside
        format("%s  %s: %.1f/s  p50 %.0f ms", super, units[:beside], beside.rate, beside.percentile(50))
      end

      private

      def kinds(mix)
        @mixes.fetch(mix)
      end

      # Every kind has at least one client.
      def numbers(shape)
        main, beside = kinds(shape.mix)
        others = (shape.connections * beside.parts / (main.parts + beside.parts).to_f).round.clamp(1, [shape.connections - 1, 1].max)
        { main => [shape.connections - others, 1].max, beside => others }
      end

      def load_all(target, seconds, lead)
        loads = numbers(target.shape).map do |kind, number|
          url = target.running.url(kind.path)
          Thread.new { target.load_tool.measure(url, connections: number, seconds: seconds, warm_up: lead) }
        end
        loads.each { |load| load.report_on_exception = false }
        loads.map(&:value)
      end
    end
  end
end
