# frozen_string_literal: true

module Bench
  # One question asked of every server: an app, what is done to it and the figures worth showing. The scenarios are in
  # `bench/scenarios`, one to a file.
  class Scenario
    attr_reader :name, :about, :drive, :metrics, :files, :plots, :headline

    APP = { app: "/" }.freeze

    # Title and text of the summary, and the percentiles in it.
    Headline = Struct.new(:title, :text, :percentiles, keyword_init: true)

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

    # app: config.ru text; without it the one of the server's dialect (Dialect). contents: a whole application instead, by server:
    # path => content. only: the names of the servers that it is asked of. drive: what puts the load on (Drive);
    # without it requests do, whose answers have `answer_bytes`: each connection makes `requests_each` on average, or as many
    # as it can in a time.
    # shapes: "WORKERSxTHREADS" strings, "WORKERSxTHREADS:CONNECTIONS" where the number of connections is part of the
    # question. files: name => bytes of files put beside config.ru. ways: what is asked for, by how the server comes by its
    # answer (Server#way). hold: seconds the app holds a thread, for the best rate possible. fixed_answer: whether a server
    # with a constant answer and no Ruby gives the same bytes. burns: whether the app can be told to hold a thread in a loop.
    # slices: whether it is asked without time slices, too. tls: the Tls that is spoken, by the mix that a shape names (nil when there is
    # only one). http2: `:only` asks over HTTP/2 the servers that speak it, with others beside them that are there for
    # comparison; `:where_spoken` asks all servers, each over the newest version that it speaks. steps:
    # what the app does, if that can be simulated (Simulation) and the drive does not know. gem: the gems that the app needs.
    # plots: what is worth drawing. headline: what the summary says, if it is among them.
    def initialize(name, about:, shapes:, metrics:, app: nil, contents: nil, only: nil, drive: nil, answer_bytes: 0,
                   requests_each: nil, files: {}, ways: APP, hold: nil, fixed_answer: false, burns: false, slices: false,
                   tls: nil, http2: nil, steps: nil, gem: nil, plots: %w[rate fair latency], headline: nil)
      @name = name
      @about = about
      @drive = drive || Drive::Requests.new(answer_bytes: answer_bytes, requests_each: requests_each)
      @app = app
      @contents = contents
      @only = only
      @shapes = shapes
      @metrics = metrics
      @files = files
      @ways = ways
      @hold = hold
      @fixed_answer = fixed_answer
      @burns = burns
      @slices = slices
      @tls = tls
      @http2 = http2
      @steps = steps
      @gem = gem
      @plots = plots
      @headline = headline && Headline.new(**headline)
    end

    # `connections`: instead of those the shapes have.
    def shapes(connections = nil)
      @shapes.map { |text| Shape.parse(text, connections: connections) }
    end

    # Path => content of what is in the folder of a server.
    def contents(server)
      @contents ? @contents.call(server) : { "config.ru" => @app || server.dialect.app }
    end

    # Why it cannot be asked here, or nil.
    def missing
      reason = @drive.missing if @drive.respond_to?(:missing)
      return reason if reason

      name = [*@gem].find { |gem| Gem::Specification.find_all_by_name(gem).empty? }
      "gem #{name} is not installed" if name
    end

    # The path that a server is asked for.
    def path(server)
      @ways.fetch(server.way) { raise Error, "#{name} is not asked of #{server.name}" }
    end

    # Whether the scenario can be asked of a server in a shape: with requests of every one that has a way to answer them,
    # over WebSockets and event streams of those that speak a dialect in which the drive can ask.
    def asks?(server, shape)
      return false unless @ways.key?(server.way) && server.runs?(shape, self)
      return false if @only && !@only.include?(server.name)
      return false unless @tls ? server.tls? || server.plain? : !server.plain?
      return false unless asks_version?(server)

      return server.takes_requests? if @app || @contents

      server.dialect && @drive.speaks?(server.dialect, shape)
    end

    # The Tls that is spoken in a shape, or nil.
    def tls(shape)
      @tls&.fetch(shape.mix)
    end

    # Whether a server is asked over HTTP/2.
    def http2?(server)
      !@http2.nil? && server.http2?
    end

    # Those of the servers that would be asked if they spoke TLS here.
    def without_tls(servers)
      return [] unless @tls

      servers.select { |server| !server.tls? && !server.plain? && server.way == :app && server.runs?(shapes.first, self) && server.takes_requests? }
    end

    # The rate no server with a shape's threads can pass, or nil when the app does not wait.
    def best_rate(shape)
      [shape.concurrency, @drive.requests_at_once(shape)].min / @hold if @hold
    end

    # Words for the clients of a shape.
    def clients(shape)
      words = [shape.clients, (@drive.clients(shape) if @drive.respond_to?(:clients))].compact.join(": ")
      [words, shape.mix].compact.join("; ")
    end

    # What a server is predicted to do in a shape, measured for so many seconds: kind of clients => Simulation::Prediction, the
    # kind that the figures are of first. Nil when there is nothing to go by.
    def prediction(server, shape, seconds)
      kinds = @drive.workload(shape) if @drive.respond_to?(:workload)
      kinds ||= [Simulation::Kind.new(@name, shape.connections, @steps)] if @steps
      kinds && Simulation.predict(server, shape, kinds, @drive.extent(shape, seconds))
    end

    def fixed_answer?
      @fixed_answer
    end

    def burns?
      @burns
    end

    def slices?
      @slices
    end

    private

    def asks_version?(server)
      case @http2
      when nil then !server.http1?
      when :only then server.http2? || server.http1?
      else true
      end
    end
  end
end
