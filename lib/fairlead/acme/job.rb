# frozen_string_literal: true

module Fairlead
  module Acme
    # One attempt to order a certificate, unless another process is ordering it or has just ordered it.
    class Job
      # +store+: a Store. +challenge+: one of CHALLENGES. +replaces+: the Certificate that is due, or nil. +recalled+: true if
      # the authority wants it replaced. +log+: for #acme_state_unusable; may be nil. +limit+: as for Program.
      def initialize(order, store, challenge, replaces: nil, recalled: false, log: nil, limit: Program::LIMIT)
        @order = order
        @store = store
        @challenge = challenge
        @replaces = replaces
        @recalled = recalled
        @log = log
        @program = Program.new("fairlead: acme #{order.name}", limit: limit)
      end

      # { outcome: "issued" }, or "current" if another process has ordered it, or "busy" if another process is ordering it, or {
      # outcome: "failed", type:, message:, retry_after: }, with the text of a certificate that could not be written. The block
      # is called before the authority is asked.
      def run(&begun)
        { outcome: @store.exclusively_for(@order.hosts) { order(&begun) } || "busy" }
      rescue Issuance::Unwritten => e
        failed(Problem.new("storage", e.message)).merge(text: e.text)
      rescue SystemCallError => e
        failed(Problem.new("storage", "nothing can be kept in acme_dir: #{Error.plain(e)}"))
      rescue Problem => e
        failed(e)
      rescue StandardError => e
        failed(Problem.new("failure", Error.sum_up(e)))
      end

      # Ends the order, or prevents its start.
      def stop = @program.stop

      def stopped? = @program.stopped?

      private

      def order
        certificate = present
        return "current" if certificate && certificate != @replaces && Time.now < certificate.renew_at

        @store.check_room(@order)
        yield if block_given?
        Issuance.new(@order, @store, @challenge, @program, log: @log).run(certificate, in_use: certificate || @replaces, recalled: @recalled)
        "issued"
      end

      # The Certificate of the file, if it is for these hosts and the engine can load it.
      def present
        text = @store.folder.read(*@store.certificate(@order), most: Bundle::MOST_BYTES + 1) or return
        bundle = Bundle.new(text, @store.path_of(@order))
        bundle.certificate if bundle.fault.nil? && bundle.certificate.for?(@order)
      rescue SystemCallError
        nil
      end

      def failed(problem) = { outcome: "failed", type: problem.type, message: problem.message, retry_after: problem.retry_after }
    end
  end
end
