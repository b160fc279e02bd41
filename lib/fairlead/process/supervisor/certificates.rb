# frozen_string_literal: true

module Fairlead
  class Supervisor
    # Brings new certificates, keys and revocation lists to the workers. The supervisor reads the files of an address first, on a thread
    # of Tls::Offers; if they can be used, it asks each spawner and each worker to read them, too. Each answers when it has
    # done so, or could not. "Reloaded" is logged when all workers that serve have it. A worker that still has not after PATIENCE is
    # replaced, if its spawner has it: a copy of that is sure to.
    class Certificates
      # In seconds.
      PATIENCE = 30

      # What processes are to have at an address: since when, whether that was logged, and the answer of each that has given one.
      Wanted = Struct.new(:location, :fingerprint, :since, :announced, :answers)

      # What one has said. +reason+: why it could not; nil if it could.
      Answer = Struct.new(:reason)

      def initialize(service, signals, workforce, generations)
        @service = service
        @log = service.log
        @signals = signals
        @workforce = workforce
        @generations = generations
        @wanted = {}
      end

      # Reads files when they have changed, from now on.
      def start = @service.tls.start { |offer| @signals.ping { pass_on(offer) } }

      # Has all files read again.
      def ask
        @service.tls.tend
        @service.tls.ask
      end

      # +process+: a Child that serves now, or a Generation whose spawner is ready. It may have read the files before they changed.
      def bring_to(process) = @wanted.each { |key, wanted| send(process, key, wanted) }

      # +process+ has done what was asked for. +reason+: why it could not; nil if it could.
      def answered(process, key, reason = nil)
        wanted = @wanted[key] or return
        said = wanted.answers[process]
        wanted.answers[process] = Answer.new(reason)
        @log.certificates_behind(process, wanted.location, reason) if reason && reason != said&.reason
        announce(wanted)
      end

      # The configuration of the current generation counts from now on, if its spawner has told of one.
      def adopt(generation)
        description = generation&.take_description or return
        @service.replace_tls(Tls::Offers.unread(description, @service.configuration, @log, kept: @service.tls.kept))
        start
        ask
      rescue TypeError, ArgumentError, NameError => e # of another version
        @log.certificates_of_former_configuration(Error.sum_up(e))
      end

      def tend
        @service.tls.tend
        @wanted.each_value do |wanted|
          announce(wanted)
          wanted.answers.keep_if { |process, _| alive?(process) }
          next unless @workforce.now - wanted.since > PATIENCE

          late = serving.find { |child| late?(child, wanted) }
          replace(late, wanted.location) if late && !replacing?
        end
      end

      private

      def pass_on(offer)
        wanted = Wanted.new(offer.location, offer.fingerprint, @workforce.now, false, {}.compare_by_identity)
        @wanted[offer.key] = wanted
        [*@generations, *@workforce.children].each { |process| send(process, offer.key, wanted) }
        announce(wanted)
      end

      def send(process, key, wanted) = process.link.send(:reload_certificates, key, wanted.location, wanted.fingerprint)

      def announce(wanted)
        return if wanted.announced || !serving.all? { |child| has?(child, wanted) }

        wanted.announced = true
        @log.certificates_reloaded(wanted.location)
      end

      def serving = @workforce.children.select { |child| child.booted? && !child.ending? }

      def has?(process, wanted) = wanted.answers.key?(process) && wanted.answers[process].reason.nil?

      def alive?(process) = [*@workforce.children, *@generations].any? { |one| one.equal?(process) }

      def late?(child, wanted)
        return false if has?(child, wanted) || @workforce.now - child.started_at <= PATIENCE

        spawner = @generations[child.generation]
        !spawner.nil? && has?(spawner, wanted)
      end

      # One after the other, so that the others can take over its work.
      def replacing? = @workforce.children.any?(&:ending?)

      def replace(child, location)
        @log.worker_behind(child, location, PATIENCE)
        @workforce.terminate(child)
      end
    end
  end
end
