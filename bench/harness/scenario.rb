# frozen_string_literal: true

module Bench
  # One question asked of every server: an app, what is done to it and the figures worth showing. The scenarios are in
  # `bench/scenarios`, one to a file.
  class Scenario
    attr_reader :name, :about, :drive, :metrics, :files, :plots

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

    # app: config.ru text; without it the one of the server's dialect (Dialect). drive: what puts the load on (Drive);
    # without it requests do, whose answers have `answer_bytes`: each connection makes `requests_each` on average, or as many
    # as it can in a time.
    # shapes: "WORKERSxTHREADS" strings, "WORKERSxTHREADS:CONNECTIONS" where the number of connections is part of the
    # question. files: name => bytes of files put beside config.ru. hold: seconds the app holds a thread, for the best
    # rate possible. fixed_answer: whether a server with a constant answer and no Ruby gives the same bytes.
    # plots: what is worth drawing.
    def initialize(name, about:, shapes:, metrics:, app: nil, drive: nil, answer_bytes: 0, requests_each: nil, files: {}, hold: nil,
                   fixed_answer: false, plots: %w[rate fair latency])
      @name = name
      @about = about
      @drive = drive || Drive::Requests.new(answer_bytes: answer_bytes, requests_each: requests_each)
      @app = app
      @shapes = shapes
      @metrics = metrics
      @files = files
      @hold = hold
      @fixed_answer = fixed_answer
      @plots = plots
    end

    # `connections`: instead of those the shapes have.
    def shapes(connections = nil)
      @shapes.map { |text| Shape.parse(text, connections: connections) }
    end

    def app(server)
      @app || server.dialect.app
    end

    # Whether the scenario can be asked of a server in a shape: with requests of every one, over WebSockets and event
    # streams of those that speak a dialect in which the drive can ask.
    def asks?(server, shape)
      return server.takes_requests? && server.runs?(shape, self) if @app

      server.dialect && @drive.speaks?(server.dialect, shape) && server.runs?(shape, self)
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
