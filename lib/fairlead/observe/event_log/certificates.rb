# frozen_string_literal: true

module Fairlead
  class EventLog
    # The messages about certificates that come by themselves. Those about `acme` take an Acme::Schedule, or an Acme::Order.
    module Certificates
      def acme_ordering(order, challenge)
        info("acme: ordering a certificate for #{order} from #{order.authority} (#{challenge})")
      end

      # +store+: the Acme::Store whose locks they are.
      def acme_busy(schedule, store)
        folder = store.folder.join("locks")
        info("acme: another process has locked the order for #{schedule.order} in #{folder}; waiting until it has finished or ended")
      end

      def acme_restored(schedule)
        warn("acme: the file of the certificate for #{schedule.order} had gone or was damaged; it is written again from memory")
      end

      # +reason+: why.
      def acme_not_restored(schedule, reason)
        warn("acme: the file of the certificate for #{schedule.order} has gone or is damaged, and cannot be written again: #{reason}; " \
             "trying again; #{in_use(schedule.certificate)}")
      end

      def acme_present(schedule)
        certificate = schedule.certificate
        info("acme: the certificate for #{schedule.order} is valid until #{in_words(certificate.expires_at)}; it is renewed from " \
             "#{in_words(certificate.renew_at)} on")
      end

      # +time+: the authority's wish.
      def acme_suggested(schedule, time)
        info("acme: #{schedule.order.authority} wants the certificate for #{schedule.order} to be renewed at #{in_words(time)}")
      end

      # +reason+: what has gone wrong.
      def acme_failed(schedule, reason)
        warn("acme: there is no new certificate for #{schedule.order}: #{reason}; next attempt at #{in_words(schedule.at)}; " \
             "#{in_use(schedule.certificate)}")
      end

      # +reason+: why the failure is in memory only.
      def acme_failure_unwritten(schedule, reason)
        warn("acme: the failure of the order for #{schedule.order} cannot be kept in acme_dir: #{reason}; it counts until the server ends")
      end

      # +problem+: why nothing can be kept in the folder.
      def acme_dir_unusable(problem)
        warn("#{problem}; no certificate is ordered or renewed until this is mended")
      end

      # +fault+: which file, and why it cannot be used.
      def acme_state_unusable(fault)
        warn("acme: #{fault}; the file counts as missing")
      end

      # At a start after failures.
      def acme_waits(schedule)
        failure = schedule.failure
        warn("acme: the next attempt to get a certificate for #{schedule.order} is at #{in_words(schedule.at)}, after " \
             "#{failure.count} that have failed: #{failure.reason}; #{in_use(schedule.certificate)}")
      end

      # +certificate+: a DevelopmentCertificate.
      def development_certificate(certificate)
        info("certificate for development: #{certificate.path} (#{certificate.hosts.join(", ")})")
        return if certificate.authority.trusted?

        commands = certificate.authority.trust_commands.map { |what, command| "\n  #{what}: #{command}" }
        info("to have it trusted:#{commands.join}")
      end

      private

      def in_use(certificate)
        return "there is no other one" unless certificate

        certificate.expired? ? "the one in use has expired" : "the one in use is valid until #{in_words(certificate.expires_at)}"
      end

      def in_words(time) = time.getutc.strftime("%F %T UTC")
    end
  end
end
