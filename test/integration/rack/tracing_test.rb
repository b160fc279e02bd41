# frozen_string_literal: true

require "test_helper"
require "json"
require "support/http_client"
require "support/rack_apps"

# Fairlead::Tracing with the API of OpenTelemetry: the gem if it is installed, otherwise the test double in test/support.
class TracingTest < Minitest::Test
  include Fairlead::Test::HttpServing

  TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
  CALLER = "00f067aa0ba902b7"
  TRACED = { "traceparent" => "00-#{TRACE}-#{CALLER}-01" }.freeze

  SETUP = <<~RUBY.freeze
    require #{File.join(ROOT, "test/support/open_telemetry").inspect}
    require "fairlead/tracing"
    OpenTelemetry.error_handler = ->(exception: nil, message: nil) { Notes.add("\#{message}: \#{exception.message}") }
  RUBY

  CODE = <<~'RUBY'
    case env["PATH_INFO"]
    when "/hold" then Notes.add("held") && sleep(0.01) until File.exist?("go")
    when "/stream" then next [200, {}, Enumerator.new { |out| sleep 0.1; out << "text" }]
    when "/raise" then raise ArgumentError, "no"
    when "/fail" then next [503, {}, []]
    when "/compute"
      computing = true
      neighbour = Thread.new { nil while computing }
      10.times { sleep 0.002 }
      computing = false
      neighbour.join
    end
    [200, {}, [JSON.generate(%w[queue_time waiting_room_time].map { |name| env["fairlead.#{name}"].call } << env["fairlead.trace_id"])]]
  RUBY

  def now = Process.clock_gettime(Process::CLOCK_REALTIME)

  def test_the_spans_of_a_request_belong_to_its_caller
    server = traced
    before = now
    queue_time, room_time, trace = JSON.parse(get(server, "/", TRACED).body)
    queue, application = spans(server, "fairlead.queue", "fairlead.application")

    assert_equal [[TRACE, CALLER]] * 2, [queue, application].map { |span| span.values_at("trace_id", "parent_span_id") }
    assert_equal TRACE, trace
    assert_equal({ "fairlead.queue_time" => queue_time, "fairlead.waiting_room_time" => room_time }, queue["attributes"])
    assert_in_delta queue_time + room_time, queue["to"] - queue["from"], 1e-5
    assert_in_delta queue["to"], application["from"], 1e-5
    # The clocks are not read at the same time.
    assert_operator before - 0.01, :<=, queue["from"]
    assert_operator application["to"], :<=, now + 0.01
    refute application["failed"]
  end

  def test_the_queue_is_that_of_the_server
    server = traced("", "-t", "1:1")
    held = connect(server).request("GET", "/hold")
    wait_for_notes(server, 1)
    client = connect(server).request("GET", "/", TRACED)
    sent = now
    wait_until("a wait that can be measured") { now - sent > 0.1 }
    released = now
    server.write("go", "")
    [client, held].each { |each| assert_equal 200, each.answer.status }
    queue, = spans(server, "fairlead.queue", "fairlead.application")

    assert_operator queue["from"], :<, sent + 0.05
    assert_operator queue["to"], :>, released - 0.01
  end

  def test_with_a_span_of_the_server_the_queue_comes_before_it
    server = traced("use ServerSpan")
    get(server, "/", TRACED)
    queue, application, outer = spans(server, "fairlead.queue", "fairlead.application", "server")

    assert_equal [TRACE] * 3, [queue, application, outer].map { |span| span["trace_id"] }
    assert_equal [CALLER, outer["span_id"], CALLER], [queue, application, outer].map { |span| span["parent_span_id"] }
  end

  def test_without_a_caller_both_belong_to_the_span_of_the_server
    server = traced("use ServerSpan")

    [["/", {}], ["/?other", TRACED]].each do |path, fields|
      get(server, path, fields)
      queue, application, outer = spans(server, "fairlead.queue", "fairlead.application", "server")

      refute_equal TRACE, outer["trace_id"]
      assert_equal [outer.values_at("trace_id", "span_id")] * 2,
                   [queue, application].map { |span| span.values_at("trace_id", "parent_span_id") }
      File.delete(server.path("spans"))
    end
  end

  def test_a_request_in_no_trace_or_of_one_that_is_not_recorded_has_none
    unsampled = TRACED.transform_values { |value| value.sub(/01\z/, "00") }
    outside = traced
    inside = traced("use ServerSpan")

    [[outside, {}], [outside, { "traceparent" => "00-1-1-01" }], [outside, unsampled], [inside, unsampled]].each do |server, fields|
      assert_equal 200, get(server, "/", fields).status
    end
    [outside, inside].each do |server|
      get(server, "/", TRACED)
      names = spans(server, "fairlead.application").map { |span| span["name"] }

      assert_equal ["fairlead.application", "fairlead.queue"], names - %w[server fairlead.lock]
    end
  end

  def test_the_application_begins_before_other_middleware_and_ends_with_its_body
    server = traced("use Class.new { def initialize(app) = @app = app; def call(env) = sleep(0.1) && @app.call(env) }")
    get(server, "/stream", TRACED)
    queue, application = spans(server, "fairlead.queue", "fairlead.application")

    assert_in_delta queue["to"], application["from"], 1e-5
    assert_operator application["to"] - application["from"], :>=, 0.2
  end

  def test_failures_are_noted
    server = traced

    { "/raise" => [500, ["ArgumentError"]], "/fail" => [503, []] }.each do |path, (status, exceptions)|
      assert_equal status, get(server, path, TRACED).status
      application, = spans(server, "fairlead.application")

      assert_equal [true, exceptions], application.values_at("failed", "exceptions")
      File.delete(server.path("spans"))
    end
  end

  def test_the_wait_for_the_lock_is_a_span_in_that_of_the_application
    server = traced
    get(server, "/compute", TRACED)
    queue, application = spans(server, "fairlead.queue", "fairlead.application")
    lock = written(server).find { |span| span["name"] == "fairlead.lock" }

    return assert_nil lock if RUBY_VERSION < "3.2"

    assert_equal [TRACE, application["span_id"]], lock.values_at("trace_id", "parent_span_id")
    assert_in_delta queue["to"], lock["from"], 1e-5
    assert_in_delta lock["attributes"]["fairlead.lock_wait"], lock["to"] - lock["from"], 1e-5
    assert_operator lock["to"], :<=, application["to"] + 0.01
  end

  def test_each_fiber_of_a_request_has_them_too
    server = traced("use ServerSpan", "--fiber-per-request")

    2.times { get(server, "/", TRACED) }
    assert_equal 2, spans(server, "fairlead.application", "fairlead.application").count { |span| span["name"] == "fairlead.application" }
    assert_empty notes(server)
  end

  BREAK = <<~'RUBY'
    # Makes a method of the API raise, for requests that name it.
    module Broken
      def self.method?(name) = Thread.current[:broken] == name

      def self.break(target, name)
        target.prepend(Module.new { define_method(name) { |*given, **named| Broken.method?(name.to_s) ? raise(NotImplementedError, "broken") : super(*given, **named) } })
      end
    end
    { OpenTelemetry.singleton_class => %i[propagation tracer_provider], OpenTelemetry::Trace.singleton_class => %i[current_span],
      OpenTelemetry.tracer_provider.tracer("fairlead", "0").class => %i[start_span],
      OpenTelemetry.tracer_provider.tracer("fairlead", "0").start_span("one").class => %i[finish] }
      .each { |target, names| names.each { |name| Broken.break(target, name) } }
    OpenTelemetry.singleton_class.prepend(Module.new { def handle_error(...) = Broken.method?("finish") ? raise("broken, too") : super })
    use Class.new {
      def initialize(app) = @app = app
      def call(env)
        Thread.current[:broken] = env["QUERY_STRING"]
        @app.call(env)
      end
    }
  RUBY

  def test_an_api_that_raises_breaks_no_request
    server = traced(BREAK)
    %w[propagation tracer_provider current_span start_span finish].each do |name|
      assert_equal 200, get(server, "/?#{name}", TRACED).status, name
    end

    assert_equal ["Fairlead::Tracing: broken"], notes(server).uniq
    assert_empty written(server)
    assert_equal 200, get(server, "/", TRACED).status
    spans(server, "fairlead.queue", "fairlead.application")
  end

  def test_without_the_api_it_does_nothing
    server = serve(unlinted("[200, {}, [[env['rack.response_finished'].size, defined?(OpenTelemetry)].inspect]]",
                            setup: "require 'fairlead/tracing'\nuse Fairlead::Tracing\n"))

    assert_equal "[0, nil]", get(server, "/", TRACED).body
  end

  def test_it_does_nothing_with_another_server
    env = { "HTTP_TRACEPARENT" => TRACED["traceparent"] }

    assert_same env, Fairlead::Tracing.new(->(given) { given }).call(env)
    assert_equal ["HTTP_TRACEPARENT"], env.keys
  end

  private

  def traced(stack = "", *options) = serve(unlinted(CODE, setup: "#{SETUP}#{stack}\nuse Fairlead::Tracing\n"), *options)

  def written(server)
    path = server.path("spans")
    File.exist?(path) ? File.readlines(path).map { |line| JSON.parse(line) } : []
  end

  # Waits until spans with these names are written, and returns them in this order, and then the others.
  def spans(server, *names)
    wait_until("the spans") do
      left = written(server)
      found = names.map { |name| left.index { |span| span["name"] == name }&.then { |index| left.delete_at(index) } }
      found + left if found.all?
    end
  end
end
