# frozen_string_literal: true

require "fairlead"
require "json"

module Fairlead
  module Acme
    # What the process that orders a certificate does: reads the order from its standard input, and writes what has become of
    # it to its standard output. It ends then, and gives back all memory that this has taken.
    class Program
      def self.run(input = $stdin, output = $stdout)
        # So that the answers are taken away.
        %w[TERM HUP].each { |signal| trap(signal) { exit(1) } }
        trap("INT", "IGNORE")
        values = JSON.parse(input.read, symbolize_names: true)
        output.write(JSON.generate(new(**values).run))
      rescue Errno::EPIPE
        nil # nobody wants to know any more
      end

      # +order+: the values of an Order. +folder+: that of the Store.
      def initialize(order:, folder:, challenge:)
        @order = Order.new(**order)
        @store = Store.new(folder)
        @challenge = challenge
      end

      # { outcome: "issued" }, or "current" if another process has ordered it, or "busy" if one does so now, or
      # { outcome: "failed", type:, message:, retry_after: }.
      def run
        Process.setproctitle("fairlead: acme #{@order.name}")
        { outcome: @store.folder.exclusively { order } || "busy" }
      rescue Problem => e
        failed(e.type, e.message, e.retry_after)
      rescue StandardError => e
        failed("failure", Error.sum_up(e))
      end

      private

      def order
        return "current" if current?

        Issuance.new(@order, @store, @challenge).run
        "issued"
      end

      def current?
        certificate = Certificate.parse(@store.folder.read(*@store.certificate(@order)))
        !certificate.nil? && certificate.for?(@order) && Time.now < certificate.renew_at
      end

      def failed(type, message, retry_after = nil) = { outcome: "failed", type: type, message: message, retry_after: retry_after }
    end
  end
end
