# frozen_string_literal: true

require "digest"
require "json"
require "time"

module Fairlead
  module Acme
    # Failed attempts of an order, and the time of the next attempt, which the supervisor has decided. A file keeps them, so
    # that a server that is started repeatedly does not ask the authority each time; authorities soon refuse such servers.
    class Failure
      # Our longest pause, in seconds.
      LONGEST = 6 * 3600

      # The longest pause that an authority can request, in seconds.
      MOST = 7 * 24 * 3600

      # Largest random deviation from the pause, as a part of it.
      JITTER = 0.15

      # The largest number of failures that is counted.
      COUNT_MOST = 10_000

      # Errors that a damaged file can raise.
      DAMAGES = [JSON::ParserError, JSON::NestingError, EncodingError, TypeError, ArgumentError, RangeError, FloatDomainError].freeze
      private_constant :DAMAGES

      class << self
        # The failure in the text of a file; nil if there is none, or it is about another order. Yields the reason if the text
        # is damaged.
        def parse(text, order, now: Time.now)
          values = JSON.parse(text.dup.force_encoding(Encoding::UTF_8), symbolize_names: true)
          return unless values.is_a?(Hash) && values[:order] == digest(order)

          count = Integer(values[:count]).clamp(1, COUNT_MOST)
          new(order, count: count, reason: Problem.plain(values[:reason]), retry_at: Time.iso8601(values[:retry_at])).bounded(now)
        rescue *DAMAGES => e
          yield Problem.plain(e.message, 100) if block_given?
          nil
        end

        # A digest that is the same for the same order.
        def digest(order) = Digest::SHA256.hexdigest(JSON.generate(order.to_h))
      end

      # Failed attempts since the last success.
      attr_reader :count

      # The reason of the last failure.
      attr_reader :reason

      # Time of the next attempt.
      attr_reader :retry_at

      def initialize(order, count:, reason:, retry_at:)
        @order = order
        @count = count
        @reason = reason
        @retry_at = retry_at
      end

      # This failure, or the same failure with our longest pause: if the next attempt is further away than any pause can be, a
      # clock was wrong or the file is damaged.
      def bounded(now)
        return self if retry_at <= now + (MOST * (1 + JITTER))

        Failure.new(@order, count: count, reason: reason, retry_at: now + LONGEST)
      end

      # The text of a file.
      def to_json(*)
        JSON.pretty_generate(order: self.class.digest(@order), hosts: @order.hosts, count: count, reason: reason,
                             retry_at: retry_at.getutc.iso8601(3)) << "\n"
      end
    end
  end
end
