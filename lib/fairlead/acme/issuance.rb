# frozen_string_literal: true

module Fairlead
  module Acme
    # One order from its beginning to its end (RFC 8555 §7.4), by means of the Program: publishes the answers, stores the
    # account, and checks the certificate before it replaces another one. Raises a Problem.
    class Issuance
      # Seconds by which the clock of an authority may be ahead of ours.
      CLOCK_DIFFERENCE = 300

      # A certificate was issued, and cannot be written.
      class Unwritten < Error
        # The text of its file.
        attr_reader :text

        def initialize(text, reason)
          @text = text
          super("the new certificate cannot be written (#{reason}); it stays in memory until it can")
        end
      end

      # +challenge+: one of CHALLENGES. +program+: a Program.
      def initialize(order, store, challenge, program, log: nil)
        @order = order
        @store = store
        @challenge = challenge
        @program = program
        @answers = Answers.new(store)
        @account = Account.new(order, store, log: log)
      end

      # +certificate+: the Certificate of the file, or nil. +in_use+: the certificate that clients see, or nil. +recalled+: true
      # if the authority wants it replaced; then the new certificate may end earlier.
      def run(certificate = nil, in_use: certificate, recalled: false)
        @in_use = in_use
        @recalled = recalled
        @request = SigningRequest.new(@order.hosts)
        input = Authority.new(@order, @account).input("order", challenge: @challenge, csr: @request.to_der, certificate: certificate)
        @program.run(input) { |event| take(event) }
        raise Problem.new("process", "the program that orders certificates has ended early") unless @issued
      rescue Problem => e
        @account.forget if e.type == "accountDoesNotExist"
        raise
      ensure
        @answers.take_away
      end

      private

      def take(event)
        case event[:event]
        when "account" then @account.save(event[:url], event[:key])
        when "answers" then give(event[:answers])
        when "issued" then keep(event[:chain])
        when "failed" then raise Problem.new(event[:type], event[:message], retry_after: event[:retry_after])
        end
      end

      def give(answers)
        answers.each { |answer| @answers.give(@challenge, **answer) }
        @program.go_on
      end

      # A certificate that the engine could not load or clients would refuse replaces no good one.
      def keep(chain)
        bundle = Bundle.new(@request.key.private_to_pem + chain, "the authority's answer")
        fault = fault_of(bundle)
        raise Problem.new("badCertificate", "the authority has issued a certificate that cannot be used: #{fault}") if fault

        @issued = true
        @store.folder.write(*@store.certificate(@order), bundle.text)
      rescue SystemCallError => e
        raise Unwritten.new(bundle.text, Error.plain(e))
      end

      def fault_of(bundle)
        bundle.fault || fault_of_certificate(bundle.certificate) || ("its chain is broken" unless bundle.linked?)
      end

      def fault_of_certificate(certificate)
        return "it is not for the key in the order" unless certificate.belongs_to?(@request.key)
        return "it is for #{certificate.hosts.join(", ")}" unless certificate.for?(@order)
        return "it has expired at #{certificate.expires_at.getutc}" if certificate.expired?

        return "it is not valid before #{certificate.begins_at.getutc}" if certificate.begins_at > Time.now + CLOCK_DIFFERENCE

        "it ends at #{certificate.expires_at.getutc}, earlier than the certificate in use (#{@in_use.expires_at.getutc})" if worse?(certificate)
      end

      # If no other certificate came in time, clients would see an expired one, although there was a good one.
      def worse?(certificate)
        return false if @in_use.nil? || @in_use.expired? || certificate.expires_at >= @in_use.expires_at

        !@recalled || Time.now >= certificate.renew_at
      end
    end
  end
end
