# frozen_string_literal: true

# Loaded by applications of test cases: writes each span that ends as a line of JSON to the file `spans`. It uses the gem
# opentelemetry-sdk if it is installed. Otherwise it defines a TEST DOUBLE with the part of the API that Fairlead::Tracing uses. The
# double has the documented signatures of opentelemetry-api 1.x, checks the types of all arguments, and refuses a second end of a span.

require "json"

# Writes spans.
module WrittenSpans
  def self.write(**span) = File.write("spans", "#{JSON.generate(span)}\n", mode: "a")
end

begin
  require "opentelemetry/sdk"

  # An exporter of the SDK.
  class SpanFile
    def export(spans, timeout: nil) # rubocop:disable Lint/UnusedMethodArgument
      spans.each do |span|
        ids = %i[trace_id span_id parent_span_id].to_h { |name| [name, span.public_send(name).unpack1("H*")] }
        WrittenSpans.write(**ids, name: span.name, from: span.start_timestamp / 1e9, to: span.end_timestamp / 1e9, attributes: span.attributes,
                                  failed: !span.status.ok?, exceptions: [*span.events].map { |event| event.attributes["exception.type"] })
      end
      OpenTelemetry::SDK::Trace::Export::SUCCESS
    end

    def force_flush(timeout: nil) = OpenTelemetry::SDK::Trace::Export::SUCCESS # rubocop:disable Lint/UnusedMethodArgument
    def shutdown(timeout: nil) = OpenTelemetry::SDK::Trace::Export::SUCCESS # rubocop:disable Lint/UnusedMethodArgument
  end

  OpenTelemetry::SDK.configure do |config|
    config.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(SpanFile.new))
  end
rescue LoadError => e
  raise unless e.path == "opentelemetry/sdk"

  require_relative "open_telemetry_double"
end

# Makes the span of a request, as the middleware of opentelemetry-instrumentation-rack does. With the query `other`, it begins a trace.
class ServerSpan
  def initialize(app)
    @app = app
  end

  def call(env)
    context = OpenTelemetry.propagation.extract(env, getter: Fairlead::Tracing::Getter) unless env["QUERY_STRING"] == "other"
    span = OpenTelemetry.tracer_provider.tracer("test", "1").start_span("server", with_parent: context)
    token = OpenTelemetry::Context.attach(OpenTelemetry::Trace.context_with_span(span, parent_context: context || OpenTelemetry::Context.current))
    @app.call(env)
  ensure
    span&.finish
    OpenTelemetry::Context.detach(token) if token
  end
end
