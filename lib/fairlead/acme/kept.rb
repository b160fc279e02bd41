# frozen_string_literal: true

module Fairlead
  module Acme
    # The files of one order: reports their state to the supervisor as facts, and writes them. The supervisor decides about the
    # next step.
    class Kept
      # +log+: for #acme_state_unusable; may be nil.
      def initialize(order, store, log: nil)
        @order = order
        @store = store
        @log = log
      end

      # The state as a Hash, and the text of a usable certificate; nil if +token+ stands for the same state. +forgotten+:
      # ignores the file of the failure, even if it could not be deleted.
      def facts(token, forgotten: false)
        return if token == (present = state)

        bundle = usable { |fault| @log&.acme_state_unusable(fault) }
        facts = { token: present, certificate: (describe(bundle.certificate) if bundle), account: account? }
        facts.update(forgotten ? { forgiven: true } : { failure: kept_failure, forgiven: forgiven? })
        [facts, bundle&.text]
      end

      # Writes a failure. Returns the reason if it cannot be written, or nil.
      def fail(count:, reason:, retry_at:)
        failure = Failure.new(@order, count: count, reason: reason, retry_at: Time.at(Rational(retry_at, 1000)))
        @store.folder.write(*@store.failure(@order), failure.to_json)
        nil
      rescue SystemCallError => e
        Error.reason(e)
      end

      # Deletes the failure, if possible.
      def forget
        @store.folder.delete(*@store.failure(@order))
      rescue SystemCallError
        nil
      end

      # Writes the text of a certificate. Raises SystemCallError.
      def write(text) = @store.folder.write(*@store.certificate(@order), text)

      # Writes the certificate if its file is still missing or damaged, because an authority issues only a few certificates for
      # the same hosts. Returns the outcome in the supervisor's words.
      def restore(text)
        return { failed: "its text is not known" } unless text

        @store.exclusively_for(@order.hosts) { usable ? "found" : write(text) && "written" } || "locked"
      rescue SystemCallError => e
        { failed: Error.reason(e) }
      end

      private

      def state
        names = [@store.certificate(@order), @store.failure(@order), @store.account(@order)]
        [*names.map { |name| @store.state_of(name) }, File.readable?(folder)].inspect
      end

      # The Bundle of the file if it is for these hosts and the engine can load it. Otherwise yields the reason.
      def usable
        text = @store.folder.read(*@store.certificate(@order), most: Bundle::MOST_BYTES + 1) or return
        bundle = Bundle.new(text, @store.path_of(@order))
        fault = bundle.fault
        yield fault if fault && block_given?
        bundle if fault.nil? && bundle.certificate.for?(@order)
      rescue SystemCallError => e
        yield "#{@store.path_of(@order)}: #{Error.reason(e)}" if block_given?
        nil
      end

      def describe(certificate)
        {
          begins_at: milliseconds(certificate.begins_at), expires_at: milliseconds(certificate.expires_at),
          renew_at: milliseconds(certificate.renew_at), fraction: certificate.fraction.to_f, identifier: certificate.identifier&.values&.join(".")
        }
      end

      def kept_failure
        text = @store.folder.read(*@store.failure(@order), most: Bundle::MOST_BYTES) or return
        failure = Failure.parse(text, @order) { |reason| damaged(reason) } or return
        { count: failure.count, reason: failure.reason, retry_at: milliseconds(failure.retry_at) }
      rescue SystemCallError => e
        damaged(Error.reason(e))
      end

      def damaged(reason)
        @log&.acme_state_unusable("#{failure_path}: #{reason}")
        nil
      end

      # A deleted file means: make the next attempt now. A missing folder means nothing.
      def forgiven? = !File.exist?(failure_path) && File.readable?(folder)

      def account? = File.exist?(@store.folder.join(*@store.account(@order)))

      def failure_path = @store.folder.join(*@store.failure(@order))

      def folder = File.dirname(failure_path)

      def milliseconds(time) = (time.to_r * 1000).floor
    end
  end
end
