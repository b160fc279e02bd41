# frozen_string_literal: true

module Fairlead
  module Acme
    # Asks an authority, by means of the Program, when a certificate should be renewed.
    class Question
      # Seconds that the question may take.
      LIMIT = 90

      # +certificate+: a Certificate.
      def initialize(order, store, certificate)
        @order = order
        @store = store
        @certificate = certificate
        @program = Program.new("fairlead: acme #{order.name}", limit: LIMIT)
      end

      # [first, last, again]; nil if there is no answer.
      def run
        answer = nil
        input = Authority.new(@order, Account.new(@order, @store)).input("renewal", certificate: @certificate)
        @program.run(input) { |event| answer = event.values_at(:start, :end, :again) if event[:event] == "renewal" }
        answer
      rescue Problem, SystemCallError
        nil
      end

      # Ends the question, or prevents its start.
      def stop = @program.stop

      def stopped? = @program.stopped?
    end
  end
end
