# frozen_string_literal: true

module Bench
  # One question asked of every server: an app, the load it gets and the figures worth showing. The scenarios are in
  # `bench/scenarios`, one to a file.
  class Scenario
    attr_reader :name, :about, :app, :answer_bytes, :metrics, :files

    @all = {}

    class << self
      def define(name, **parts)
        @all[name] = new(name, **parts)
      end

      def names
        @all.keys
      end

      def named(name)
        @all.fetch(name) { raise Error, "no scenario #{name}; there are #{names.join(", ")}" }
      end
    end

    # app: config.ru text. answer_bytes: of the body it answers with. shapes: "WORKERSxTHREADS" strings. seconds: of one measurement.
    # requests_each: how many requests a connection makes on average; without it a measurement takes a time, not a number.
    # files: name => bytes of files put beside config.ru. hold: seconds the app holds a thread, for the best rate possible.
    # fixed_answer: whether a server with a constant answer and no Ruby gives the same bytes.
    def initialize(name, about:, app:, answer_bytes:, shapes:, metrics:, requests_each: nil, files: {}, hold: nil, fixed_answer: false)
      @name = name
      @about = about
      @app = app
      @answer_bytes = answer_bytes
      @shapes = shapes
      @metrics = metrics
      @requests_each = requests_each
      @files = files
      @hold = hold
      @fixed_answer = fixed_answer
    end

    def shapes(connections)
      @shapes.map { |text| Shape.parse(text, connections: connections) }
    end

    # Requests of one measurement, or nil when time alone ends it. Where the app holds its threads long, a number is exact
    # while a time would cut the last batch off.
    def requests(shape)
      @requests_each && @requests_each * shape.connections
    end

    # The rate no server with a shape's threads can pass, or nil when the app does not wait.
    def best_rate(shape)
      [shape.concurrency, shape.connections].min / @hold if @hold
    end

    def fixed_answer?
      @fixed_answer
    end
  end
end
