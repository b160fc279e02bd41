# frozen_string_literal: true

require_relative "requests"
require_relative "session"

module Bench
  module Drive
    # Users of an application with pages and a form: every request of every client is one of several, drawn by weight. They share
    # a Session. Requests of the same name have figures together: those of the first name are the figures of the measurement,
    # those of another one are beside them.
    class Pages < Requests
      # A request: how often it is drawn, the name of its figures, its verb (GET, POST) and path, and the fields of a form.
      Page = Struct.new(:weight, :name, :verb, :path, :fields, keyword_init: true) do
        # As the load tool reads it.
        def line(session)
          [weight, name, verb, path, *(session.form(fields) if fields)].join(" ")
        end
      end

      # Seconds that are not counted, until all clients are on their way.
      LEAD = 0.5

      # mixes: lists of Page, by the mix that a shape names. form: the path of a page with the form.
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

      # A form that is refused would be quick.
      def problem(found)
        super || ("not all were answered well: #{found.errors}" unless found.errors.empty?)
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
