# frozen_string_literal: true

require "digest"
require "json"
require "time"

module Fairlead
  module Acme
    # Failed attempts of an order, and when the next one may be made, as the supervisor has decided. It is kept in a file, so that a
    # server that is started again and again does not ask the authority again and again, which soon refuses such servers.
    class Failure
      # The longest pause of ours, in seconds.
      LONGEST = 6 * 3600

      # The longest that an authority can make us wait, in seconds.
      MOST = 7 * 24 * 3600

      # By how much a pause differs from what is due, at most.
      JITTER = 0.15

      # The largest number of failures that counts.
      COUNT_MOST = 10_000

      # Errors that a damaged file can raise.
      DAMAGES = [JSON::ParserError, JSON::NestingError, EncodingError, TypeError, ArgumentError, RangeError, FloatDomainError].freeze
      private_constant :DAMAGES

      class << self
        # From the text of a file; nil if there is none, or it is about another order. Yields the reason if the text is damaged.
        def parse(text, order, now: Time.now)
          values = JSON.parse(text.dup.force_encoding(Encoding::UTF_8), symbolize_names: true)
          return unless values.is_a?(Hash) && values[:order] == digest(order)

          count = Integer(values[:count]).clamp(1, COUNT_MOST)
          new(order, count: count, reason: Problem.plain(values[:reason]), retry_at: Time.iso8601(values[:retry_at])).bounded(now)
        rescue *DAMAGES => e
          yield Problem.plain(e.message, 100) if block_given?
          nil
        end

        # The same for the same order.
        def digest(order) = Digest::SHA256.hexdigest(JSON.generate(order.to_h))
      end

      # How many attempts have failed since the last one that has not.
      attr_reader :count

      # What has gone wrong the last time.
      attr_reader :reason

      # When the next attempt may be made.
      attr_reader :retry_at

      def initialize(order, count:, reason:, retry_at:)
        @order = order
        @count = count
        @reason = reason
        @retry_at = retry_at
      end

      # Itself, unless the next attempt is further away than any pause can be, because a clock was wrong or a file is damaged:
      # the same failure with the longest pause of ours.
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
