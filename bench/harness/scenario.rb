# frozen_string_literal: true

module Bench
  # One question for every server: an app, its load and the statistics worth showing. The scenarios are in
  # `bench/scenarios`, one per file.
  class Scenario
    attr_reader :name, :about, :drive, :metrics, :files, :plots, :headline

    APP = { app: "/" }.freeze

    # Title and text of the summary, and its percentiles.
    Headline = Struct.new(:title, :text, :percentiles, keyword_init: true)

    @all = {}

    class << self
      def define(name, **parts)
        @all[name] = new(name, **parts)
      end

      def names
        @all.keys
      end

      # The scenarios that a name on the command line means: the one of this name, or all of a group ("growth").
      def matching(name)
        group = names.select { |one| one.start_with?("#{name}-") }
        names.include?(name) || group.empty? ? [named(name)] : group.map { |one| named(one) }
      end

      def named(name)
        @all.fetch(name) { raise Error, "no scenario #{name}; there are #{names.join(", ")}" }
      end
    end

    # app: config.ru text; without it, the app of the server's dialect (Dialect).
    # contents: a whole application instead, by server: path => content.
    # only: names of the servers to measure.
    # drive: the load (Drive); the default is requests with responses of `answer_bytes`: each connection sends
    #   `requests_each` on average, or as many as it can in a given time.
    # shapes: "WORKERSxTHREADS" strings, "WORKERSxTHREADS:CONNECTIONS" if the number of connections is part of the
    #   question.
    # files: name => bytes of files beside config.ru.
    # ways: the path to request, by the server's way of responding (Server#way).
    # hold: seconds for which the app holds a thread, for the best possible rate.
    # fixed_answer: true if a server with a constant response and no Ruby sends the same bytes.
    # burns: true if the app can be told to hold a thread in a loop.
    # slices: true to measure without time slices, too.
    # memory: true to measure servers with other ways to share memory, too.
    # tls: the Tls to use, by the mix in a shape's name (nil if there is only one).
    # http2: `:only` measures the servers that speak it over HTTP/2, beside others for comparison; `:where_spoken`
    #   measures all servers, each over the newest version that it speaks.
    # steps: the app's steps, if they can be simulated (Simulation) and the drive does not know them.
    # gem: the gems that the app needs.
    # arguments: arguments for a server's command line, by its name.
    # plots: the plots worth drawing. headline: the text of the summary, if the summary is one of the plots.
    def initialize(name, about:, shapes:, metrics:, app: nil, contents: nil, only: nil, drive: nil, answer_bytes: 0,
                   requests_each: nil, files: {}, ways: APP, hold: nil, fixed_answer: false, burns: false, slices: false,
                   memory: false, tls: nil, http2: nil, steps: nil, gem: nil, arguments: {}, plots: %w[rate fair latency], headline: nil)
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
      @memory = memory
      @tls = tls
      @http2 = http2
      @steps = steps
      @gem = gem
      @arguments = arguments
      @plots = plots
      @headline = headline && Headline.new(**headline)
    end

    # `connections`: replaces the shapes' numbers of connections.
    def shapes(connections = nil)
      @shapes.map { |text| Shape.parse(text, connections: connections) }
    end

    # Path => content of the files in a server's folder.
    def contents(server)
      @contents ? @contents.call(server) : { "config.ru" => @app || server.dialect.app }
    end

    # Why it cannot be measured here, or nil.
    def missing
      reason = @drive.missing if @drive.respond_to?(:missing)
      return reason if reason

      name = [*@gem].find { |gem| Gem::Specification.find_all_by_name(gem).empty? }
      "gem #{name} is not installed" if name
    end

    # More arguments for a server's command line.
    def arguments(server)
      @arguments.fetch(server.name, [])
    end

    # The path to request from a server.
    def path(server)
      @ways.fetch(server.way) { raise Error, "scenario #{name} does not support #{server.name}" }
    end

    # True if the scenario suits a server and a shape: with requests, the server must have one of the scenario's ways;
    # over WebSockets and event streams, the drive must support its dialect.
    def asks?(server, shape)
      return false unless @ways.key?(server.way) && server.runs?(shape, self)
      return false if @only && !@only.include?(server.name)
      return false unless @tls ? server.tls? || server.plain? : !server.plain?
      return false unless asks_version?(server)

      return server.takes_requests? if @app || @contents

      server.dialect && @drive.speaks?(server.dialect, shape)
    end

    # The Tls of a shape, or nil.
    def tls(shape)
      @tls&.fetch(shape.mix)
    end

    # True if requests to a server use HTTP/2.
    def http2?(server)
      !@http2.nil? && server.http2?
    end

    # The servers that would be measured if they supported TLS here.
    def without_tls(servers)
      return [] unless @tls

      servers.select { |server| !server.tls? && !server.plain? && server.way == :app && server.runs?(shapes.first, self) && server.takes_requests? }
    end

    # The highest rate that is possible with a shape's threads, or nil if the app does not wait.
    def best_rate(shape)
      [shape.concurrency, @drive.requests_at_once(shape)].min / @hold if @hold
    end

    # A description of a shape's clients.
    def clients(shape)
      words = [(shape.clients unless @drive.respond_to?(:table)), (@drive.clients(shape) if @drive.respond_to?(:clients))].compact.join(": ")
      [words, shape.mix].compact.join("; ")
    end

    # The predicted results of a server in a shape, measured for that many seconds: kind of clients =>
    # Simulation::Prediction, with the measured kind first. Nil if there is no basis for a prediction.
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

    def memory?
      @memory
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
