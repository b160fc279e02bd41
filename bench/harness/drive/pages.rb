# frozen_string_literal: true

require_relative "requests"
require_relative "session"

module Bench
  module Drive
    # Users of an application with pages and a form: every request of every client is drawn by weight. They share a
    # Session. Requests with the same name share statistics: the first name's are the statistics of the measurement, the
    # other names' are beside them.
    class Pages < Requests
      # A request: its weight, the name of its statistics, its verb (GET, POST) and path, and the fields of a form.
      Page = Struct.new(:weight, :name, :verb, :path, :fields, keyword_init: true) do
        # A line for the load tool.
        def line(session)
          [weight, name, verb, path, *(session.form(fields) if fields)].join(" ")
        end
      end

      # Seconds that are not counted, until all clients have started.
      LEAD = 0.5

      # mixes: lists of Page, by the mix in a shape's name. form: the path of a page with the form.
      def initialize(mixes:, form:)
        super(answer_bytes: 1)
        @mixes = mixes
        @form = form
      end

      def units
        main, beside = @mixes.values.flatten.map(&:name).uniq
        { many: "#{main}s", one: main, beside: "#{beside}s" }
      end

      def warm_up(target, seconds)
        load(target, seconds, 0)
      end

      def measure(target, seconds)
        load(target, seconds, LEAD)
      end

      # Any error is a problem, because a rejected form would be quick.
      def problem(found)
        super || ("some requests failed: #{found.errors}" unless found.errors.empty?)
      end

      private

      def load(target, seconds, lead)
        session = Session.new(target.running.url(@form))
        lines = @mixes.fetch(target.shape.mix).map { |page| page.line(session) }
        file = target.running.site.write("requests", lines.join("\n"))
        all, kinds = target.load_tool.mix(target.url, file: file, fields: session.fields, connections: target.connections, seconds: seconds,
                                                      warm_up: lead)
        main, beside = kinds.values
        all.tap do |found|
          found.beside = beside
          %i[rate requests latency corrected].each { |figure| found[figure] = main[figure] }
        end
      end
    end
  end
end
