# frozen_string_literal: true

require "fairlead/version"

module Fairlead
  # Rack middleware that adds spans of OpenTelemetry for the waits of a request and for the application. Put it behind the middleware
  # of OpenTelemetry:
  #
  #   require "fairlead/tracing"
  #   use Fairlead::Tracing
  #
  # It does nothing with another server, without the OpenTelemetry API, and for requests that are in no trace or not recorded. Errors of
  # the API go to OpenTelemetry's error handler. docs/guides/deployment.md describes the spans.
  class Tracing
    # Reads request fields from an env, for OpenTelemetry's propagators.
    module Getter
      PREFIX = "HTTP_"

      class << self
        def get(env, name) = env[PREFIX + name.upcase.tr("-", "_")]

        def keys(env)
          env.keys.filter_map { |key| key.delete_prefix(PREFIX).downcase.tr("_", "-") if key.is_a?(String) && key.start_with?(PREFIX) }
        end
      end
    end

    class << self
      # Calls the block, and leaves errors to OpenTelemetry: they must not reach the request.
      def guard
        yield
      rescue StandardError, ScriptError => e
        begin
          ::OpenTelemetry.handle_error(exception: e, message: name)
        rescue StandardError, ScriptError
          nil # there is nobody else to tell
        end
      end
    end

    # @param app [#call] the rest of the application
    def initialize(app)
      @app = app
    end

    # @return [Array] the response of the application
    def call(env)
      Tracing.guard { Spans.start(env) } if defined?(::OpenTelemetry::Trace) && env.key?("fairlead.queue_time")
      @app.call(env)
    end

    # The spans of one request.
    class Spans
      class << self
        # Starts them, unless nobody records the request, or there is no trace that they could belong to.
        def start(env)
          server = ::OpenTelemetry::Trace.current_span
          return if server.context.valid? && !server.recording?

          parent = caller_of(env, server.context)
          return unless ::OpenTelemetry::Trace.current_span(parent).context.valid?

          finished = env.fetch("rack.response_finished")
          spans = new(env, parent, server.context.valid? ? ::OpenTelemetry::Context.current : parent)
          finished << spans.method(:finish)
        end

        private

        # The context of the client's span, from fields such as traceparent. If there is none, or if the server's span belongs to
        # another trace, the current context.
        def caller_of(env, server)
          current = ::OpenTelemetry::Context.current
          caller = ::OpenTelemetry.propagation.extract(env, context: current, getter: Getter)
          is_same_trace = !server.valid? || ::OpenTelemetry::Trace.current_span(caller).context.trace_id == server.trace_id
          is_same_trace ? caller : current
        end
      end

      # Contexts: +parent+ is for the span of the queue, +around+ for the span of the application.
      def initialize(env, parent, around)
        @lock_wait = env["fairlead.lock_wait"]
        @tracer = ::OpenTelemetry.tracer_provider.tracer("fairlead", VERSION)
        @began = began
        queue, room = env.values_at("fairlead.queue_time", "fairlead.waiting_room_time").map { |time| time.call.to_f }
        waits = { "fairlead.queue_time" => queue, "fairlead.waiting_room_time" => room }
        add("fairlead.queue", parent, @began - queue - room, @began, waits)
        @application = @tracer.start_span("fairlead.application", with_parent: around, start_timestamp: @began)
      end

      # Called after the response, as rack.response_finished wants.
      def finish(_env, status, _headers, error)
        Tracing.guard { add_lock_wait }
        Tracing.guard { note_failure(status, error) }
        Tracing.guard { @application.finish }
      end

      private

      # The time at which the server began to run the request, before other middleware.
      def began
        began_at = Native.began_at
        began_at ? Time.now - (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began_at) : Time.now
      end

      # The sum of many short waits, as one span.
      def add_lock_wait
        time = @lock_wait&.call.to_f
        return unless time.positive?

        inside = ::OpenTelemetry::Trace.context_with_span(@application)
        add("fairlead.lock", inside, @began, @began + time, { "fairlead.lock_wait" => time })
      end

      def note_failure(status, error)
        @application.record_exception(error) if error
        @application.status = ::OpenTelemetry::Trace::Status.error(error ? error.class.name.to_s : "") if error || status.to_i >= 500
      end

      def add(name, parent, from, to, attributes)
        @tracer.start_span(name, with_parent: parent, start_timestamp: from, attributes: attributes).finish(end_timestamp: to)
      end
    end
    private_constant :Spans
  end
end
