# frozen_string_literal: true

module Fairlead
  module Acme
    # What has become of an order so far, and when something is to be done about it.
    class Schedule
      # How long to wait for another process that is ordering, in seconds.
      BUSY_PAUSE = 10

      attr_reader :order

      # The Certificate that is there; nil if there is none for these hosts. The Failure of the last attempt, or nil.
      attr_reader :certificate, :failure

      def initialize(order, store)
        @order = order
        @store = store
        @not_before = Time.at(0)
        read
      end

      # Whether it is time to order, for the first time or again.
      def due?(now = Time.now)
        forgive if failure
        now >= at
      end

      # When it is.
      def at = [failure ? failure.retry_at : certificate&.renew_at, @not_before].compact.max

      # Another process has ordered it, or has given it up.
      def read
        @certificate = Certificate.parse(@store.folder.read(*@store.certificate(order)))
        @certificate = nil unless @certificate&.for?(order)
        @failure = Failure.parse(@store.folder.read(*@store.failure(order)) || "{}", order)
      end

      def succeeded
        @store.folder.delete(*@store.failure(order))
        read
      end

      def failed(problem)
        @failure = Failure.after(failure, order, problem)
        @store.folder.write(*@store.failure(order), @failure.to_json)
      end

      def put_off(seconds = BUSY_PAUSE)
        @not_before = Time.now + seconds
      end

      private

      # Whoever deletes the file wants the next attempt to be made now.
      def forgive
        @failure = nil unless File.exist?(@store.folder.join(*@store.failure(order)))
      end
    end
  end
end
