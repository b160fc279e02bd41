# frozen_string_literal: true

module Fairlead
  module Tls
    # All Offers of a server: one for each `ssl://` address.
    class Offers
      # How soon it looks again when a file has just changed, in seconds: the others that belong to it may follow.
      SETTLING = 1

      # Makes those of the addresses of the configuration. Raises BindError if one of them cannot be served. +checking+: as for Settings.
      def initialize(configuration, log, checking: false)
        @configuration = configuration
        @log = log
        @interval = configuration.watch_certificates
        bindings = configuration.bind.map { |address| Binding.parse(address) }.grep(Binding::Ssl)
        @offers = bindings.uniq(&:address).map { |binding| Offer.new(binding, configuration, checking: checking) }
        @next_look = now + @interval
        @said = []
      end

      # Whether there are any.
      def any? = @offers.any?

      # The one for an address: that of the configuration for the same address (with another query, if there is none with the same),
      # or one of its own. nil for an address without TLS.
      def for(address)
        binding = Binding.parse(address)
        return unless binding.is_a?(Binding::Ssl)

        %i[address location].each do |name|
          found = @offers.find { |offer| offer.public_send(name) == binding.public_send(name) }
          return found if found
        end
        Offer.new(binding, @configuration).tap { |offer| @offers << offer }
      end

      # Says what people should know, if it has not been said already.
      def warn
        texts = @offers.flat_map(&:warnings).uniq
        (texts - @said).each { |text| @log.warning(text) }
        @said = texts
      end

      # Says which certificates were made for development, and how to have them trusted.
      def tell_of_development = @offers.filter_map(&:development).uniq(&:path).each { |certificate| @log.development_certificate(certificate) }

      # Reads all files again. What cannot be used is refused with a line in the log, and leaves what was there. Returns whether
      # nothing was refused. +quietly+: another process reads the same files, and says what there is to say. If it is looking at them
      # all the time, it also comes back to what only this process has found halfway written.
      def reload(quietly: false)
        results = @offers.map { |offer| reload_one(offer, quietly) }
        warn unless quietly
        results.all?
      end

      # Seconds until #look has something to do; nil for never.
      def pause = watching? ? [@next_look - now, 0].max : nil

      # Looks, if it is time, whether files have changed, and reloads them when they do not change any more. Returns whether it has
      # done that.
      def look
        return false if !watching? || now < @next_look

        changes = @offers.map(&:change)
        settled = changes == @seen
        @seen = changes
        @next_look = now + (settled || changes.none? ? @interval : [SETTLING, @interval].min)
        return false if changes.none? || !settled

        reload
        true
      end

      private

      def watching? = @interval.positive? && @offers.any?(&:files?)

      def reload_one(offer, quietly)
        offer.reload
        @log.certificates_reloaded(offer.location) unless quietly
        true
      rescue Invalid => e
        @log.certificates_refused(offer.location, e.message) unless quietly && watching?
        false
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
