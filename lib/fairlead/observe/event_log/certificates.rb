# frozen_string_literal: true

module Fairlead
  class EventLog
    # The messages about automatic certificates that the supervisor does not log.
    module Certificates
      def acme_ordering(order, challenge)
        info("acme: ordering a certificate for #{order} from #{order.authority} (#{challenge})")
      end

      # +fault+: the file, and the reason why it cannot be used.
      def acme_state_unusable(fault)
        warn("acme: #{fault}; the file counts as missing")
      end

      # +certificate+: a DevelopmentCertificate.
      def development_certificate(certificate)
        info("certificate for development: #{certificate.path} (#{certificate.hosts.join(", ")})")
        return if certificate.authority.trusted?

        commands = certificate.authority.trust_commands.map { |what, command| "\n  #{what}: #{command}" }
        info("to have it trusted:#{commands.join}")
      end
    end
  end
end
