# frozen_string_literal: true

# See open_telemetry.rb.
require "securerandom"

module OpenTelemetry
  module Checks
    def self.type(value, *types)
      raise ArgumentError, "#{value.inspect} is none of #{types.inspect}" unless types.any? { |type| type === value } # rubocop:disable Style/CaseEquality
    end
  end

  # An immutable set of values. Each fiber has a stack of them.
  class Context
    ROOT = new

    class << self
      def current = stack.last || ROOT
      def attach(context) = Checks.type(context, Context) || stack.push(context).size

      def detach(token)
        raise "calls to detach should match corresponding calls to attach" unless token == stack.size

        stack.pop && true
      end

      private

      def stack = Thread.current[:open_telemetry] ||= []
    end

    def value(key) = values[key]
    def set_value(key, value) = dup.tap { |copy| copy.values = { **values, key => value }.freeze }

    protected

    attr_writer :values

    def values = @values || {}
  end

  module Trace
    SpanContext = Struct.new(:trace_id, :span_id, :is_sampled) do
      def valid? = !trace_id.nil?
    end

    Status = Struct.new(:is_error) do
      def self.error(description = "") = Checks.type(description, String) || new(true)
    end

    # A span that is not recorded.
    class Span
      attr_reader :context

      def initialize(context = SpanContext.new)
        @context = context
      end

      def recording? = false
      def record_exception(exception, attributes: nil) = Checks.type(exception, Exception) || Checks.type(attributes, nil, Hash)
      def finish(end_timestamp: nil) = Checks.type(end_timestamp, nil, Time) || self

      def status=(status)
        Checks.type(status, Status)
      end

      INVALID = new
    end

    class RecordedSpan < Span
      def initialize(name, context, parent, attributes, from)
        super(context)
        @name = name
        @parent = parent
        @attributes = attributes || {}
        @from = from
        @exceptions = []
        @failed = @ended = false
      end

      def recording? = !@ended
      def record_exception(exception, attributes: nil) = super || @exceptions << exception.class.name

      def status=(status)
        super
        @failed = status.is_error
      end

      def finish(end_timestamp: nil)
        super
        raise "the span has ended" if @ended

        @ended = true
        ids = { trace_id: context.trace_id, span_id: context.span_id, parent_span_id: @parent.span_id || ("0" * 16) }
        WrittenSpans.write(**ids, name: @name, from: @from.to_r.to_f, to: (end_timestamp || Time.now).to_r.to_f, attributes: @attributes,
                                  failed: @failed, exceptions: @exceptions)
        self
      end
    end

    class << self
      def current_span(context = nil)
        Checks.type(context, nil, Context)
        (context || Context.current).value(:span) || Span::INVALID
      end

      def context_with_span(span, parent_context: Context.current)
        Checks.type(span, Span)
        Checks.type(parent_context, Context)
        parent_context.set_value(:span, span)
      end
    end

    class Tracer
      def start_span(name, with_parent: nil, attributes: nil, links: nil, start_timestamp: nil, kind: nil)
        { name => [String], with_parent => [nil, Context], links => [nil, Array], start_timestamp => [nil, Time],
          kind => [nil, :internal, :server] }.each { |value, types| Checks.type(value, *types) }
        check_attributes(attributes)
        parent = Trace.current_span(with_parent).context
        context = SpanContext.new(parent.trace_id || SecureRandom.hex(16), SecureRandom.hex(8), parent.valid? ? parent.is_sampled : true)
        context.is_sampled ? RecordedSpan.new(name, context, parent, attributes, start_timestamp || Time.now) : Span.new(context)
      end

      private

      # The SDK changes the Hash.
      def check_attributes(attributes)
        Checks.type(attributes, nil, Hash)
        raise ArgumentError, "the attributes are frozen" if attributes&.frozen?

        attributes&.each { |name, value| Checks.type(name, String) || Checks.type(value, String, Numeric, true, false) }
      end
    end

    class TracerProvider
      def tracer(name = nil, version = nil) = Checks.type(name, String) || Checks.type(version, nil, String) || Tracer.new
    end
  end

  # W3C Trace Context.
  class Propagator
    FORM = /\A00-(?<trace>\h{32})-(?<span>\h{16})-(?<flags>\h\h)\z/

    def extract(carrier, context: Context.current, getter: nil)
      getter.keys(carrier).each { |key| Checks.type(key, String) }
      match = FORM.match(getter.get(carrier, "traceparent").to_s) or return context

      span = Trace::Span.new(Trace::SpanContext.new(match[:trace], match[:span], match[:flags].hex.odd?))
      Trace.context_with_span(span, parent_context: context)
    end
  end

  class << self
    attr_writer :error_handler

    def tracer_provider = @tracer_provider ||= Trace::TracerProvider.new
    def propagation = @propagation ||= Propagator.new
    def handle_error(exception: nil, message: nil) = @error_handler.call(exception: exception, message: message)
  end
end
