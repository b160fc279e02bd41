# frozen_string_literal: true

module Fairlead
  module Tls
    # All Offers of a server, one for each `ssl://` address. What happens to one is no other one's business: each has its Upkeep.
    class Offers
      class << self
        # What another process knows of its Offers, from its #description. They are read when they are asked for. +kept+: what those keep
        # (#kept) in the place of which they are; it stays until then.
        def unread(description, configuration, log, kept: {})
          texts, *offers = Marshal.load(description) # rubocop:disable Security/MarshalLoad -- it comes from a process of this server
          Store.replace(texts)
          new(configuration, log, offers.map { |parts| Offer.unread(*parts, kept) })
        end

        # What the Offers of another process keep (#kept), as it has written that to +pipe+. Nothing, if it has ended or has another version.
        def handed_over(pipe)
          Marshal.load(pipe) # rubocop:disable Security/MarshalLoad -- it comes from the supervisor
        rescue TypeError, ArgumentError, EOFError
          {}
        ensure
          pipe.close
        end
      end

      # Makes those of the addresses of the configuration. Raises BindError if one of them cannot be served. +checking+: as for Settings.
      # +kept+: as for Offer.
      def initialize(configuration, log, offers = nil, checking: false, kept: nil)
        @configuration = configuration
        @log = log
        @kept = kept
        @interval = configuration.watch_certificates
        @upkeeps = (offers || of_configuration(checking)).map { |offer| Upkeep.new(offer) }
        @said = []
        @saying = Mutex.new
      end

      # Whether there are any.
      def any? = @upkeeps.any?

      # The one for an address: that of the configuration for the same address (with another query, if there is none with the same),
      # or one of its own. nil for an address without TLS.
      def for(address)
        binding = Binding.parse(address)
        return unless binding.is_a?(Binding::Ssl)

        %i[address location].each do |name|
          found = all.find { |offer| offer.public_send(name) == binding.public_send(name) }
          return found if found
        end
        make(binding).tap { |offer| @upkeeps << Upkeep.new(offer) }
      end

      # Says what people should know, if it has not been said already.
      def warn
        @saying.synchronize do
          texts = all.flat_map(&:warnings).uniq
          (texts - @said).each { |text| @log.warning(text) }
          @said = texts
        end
      end

      # Says which certificates were made for development, and how to have them trusted.
      def tell_of_development = all.filter_map(&:development).uniq(&:path).each { |certificate| @log.development_certificate(certificate) }

      # Reads all files again, on the thread of the caller. What cannot be used is refused with a line in the log, and leaves what was
      # there. Returns whether nothing was refused.
      def reload
        @upkeeps.map { |upkeep| upkeep.reload.tap { |reason| tell(upkeep.offer, reason) } }.none?
      end

      # From now on reads the files when they have changed, and when it is asked to. If there is a block, it is called, on another
      # thread, with each Offer that has changed, which is not logged then.
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

      # Has an offer become what another process has read: that of this key, or, in other code with another configuration, that of the
      # same location. +fingerprint+: of what was read. Tries until it succeeds. The block is called, now or on another thread, with
      # the reason of a failure or nil.
      def follow(key, location, fingerprint, &told)
        upkeep = @upkeeps.find { |one| one.offer.key == key } || @upkeeps.find { |one| one.offer.location == location }
        return told.call(nil) if upkeep.nil? || upkeep.offer.fingerprint == fingerprint

        upkeep.start(&told)
        upkeep.ask
      rescue ThreadError => e
        told.call(e.message)
      end

      def stop = @upkeeps.each(&:stop)

      # For Offers.unread in another process.
      def description = Marshal.dump([Store.texts, *all.map(&:description)])

      # The settings that each Offer keeps, by its key.
      def kept = all.to_h { |offer| [offer.key, offer.kept] }.compact

      # Keeps none any more: this process starts no spawner.
      def forget = all.each(&:forget)

      private

      def of_configuration(checking)
        bindings = @configuration.bind.map { |address| Binding.parse(address) }.grep(Binding::Ssl)
        bindings.uniq(&:address).map { |binding| make(binding, checking: checking) }
      end

      def make(binding, checking: false)
        offer = Offer.new(binding, @configuration, checking: checking, kept: @kept)
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
