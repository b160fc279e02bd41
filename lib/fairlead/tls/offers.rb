# frozen_string_literal: true

module Fairlead
  module Tls
    # All Offers of a server, one for each `ssl://` address. They do not affect each other: each has its own Upkeep.
    class Offers
      # Makes an Offer for each configured address. Raises BindError if one of them cannot be served. +checking+: as for
      # Settings. +kept+, +keep+: as for Offer.
      def initialize(configuration, log, checking: false, kept: nil, keep: false)
        @configuration = configuration
        @log = log
        @kept = kept
        @keep = keep
        @interval = configuration.watch_certificates
        @upkeeps = of_configuration(checking).map { |offer| Upkeep.new(offer) }
        @said = []
        @saying = Mutex.new
      end

      # True if there are any.
      def any? = @upkeeps.any?

      # The offer for an address: the configured one with the same address (or with another query, if there is none with the
      # same), or a new one. nil for an address without TLS.
      def for(address)
        binding = Binding.parse(address)
        return unless binding.is_a?(Binding::Ssl)

        %i[address location].each do |name|
          found = all.find { |offer| offer.public_send(name) == binding.public_send(name) }
          return found if found
        end
        make(binding).tap { |offer| @upkeeps << Upkeep.new(offer) }
      end

      # Logs warnings that have not been logged yet.
      def warn
        @saying.synchronize do
          texts = all.flat_map(&:warnings).uniq
          (texts - @said).each { |text| @log.warning(text) }
          @said = texts
        end
      end

      # Logs the development certificates, and the commands to trust them.
      def tell_of_development = all.filter_map(&:development).uniq(&:path).each { |certificate| @log.development_certificate(certificate) }

      # Reads all files again, on the thread of the caller. Unusable files are refused with a line in the log, and the previous
      # offer stays. Returns true if nothing was refused.
      def reload
        @upkeeps.map { |upkeep| upkeep.reload.tap { |reason| tell(upkeep.offer, reason) } }.none?
      end

      # From now on reads the files when they have changed, and when it is asked to. If there is a block, it is called, on
      # another thread, with each Offer that has changed; such a change is not logged.
      def start(&changed)
        @changed = changed || @changed
        @upkeeps.each { |upkeep| upkeep.start(@interval, tried: method(:warn)) { |reason| tell(upkeep.offer, reason) } }
      rescue ThreadError => e
        @log.certificates_unwatched(e) # the next #tend tries again
      end

      # Replaces threads that were killed.
      def tend = start

      # Has all files read again soon.
      def ask = @upkeeps.each(&:ask)

      # The Offer with this key; nil if there is none.
      def find(key) = all.find { |offer| offer.key == key }

      def stop = @upkeeps.each(&:stop)

      # [[offer, settings], …]: settings that were read since the last call. See Offer#take_read.
      def take_read = all.map { |offer| [offer, offer.take_read] }.reject { |_, settings| settings.nil? }

      private

      def of_configuration(checking)
        bindings = @configuration.bind.map { |address| Binding.parse(address) }.grep(Binding::Ssl)
        bindings.uniq(&:address).map { |binding| make(binding, checking: checking) }
      end

      def make(binding, checking: false)
        offer = Offer.new(binding, @configuration, checking: checking, kept: @kept, keep: @keep)
        @log.certificates_missing(offer.location, offer.fault) if offer.fault
        offer
      end

      def all = @upkeeps.map(&:offer)

      def tell(offer, reason)
        if reason
          @log.certificates_refused(offer.location, reason)
        elsif @changed
          @changed.call(offer)
        else
          @log.certificates_reloaded(offer.location)
        end
        warn
      end
    end
  end
end
