# frozen_string_literal: true

require "digest/sha2"

module Fairlead
  module Tls
    # The TLS offer of the listeners of one `ssl://` address. Engines use the native object, so a new certificate needs no new
    # engine.
    class Offer
      # If files do not match, they may be in the middle of a replacement, one after the other; seconds that this may take.
      MOMENT = 0.1

      # The address, and the address without its query.
      attr_reader :address, :location

      # The name of the offer among processes of a server: the same for the same address with the same files.
      attr_reader :key

      # The state of the files at the last reading, successful or not; nil before.
      attr_reader :tried

      # The reason why there is no certificate, if no other process has handed one over and the files cannot be used; or nil.
      attr_reader :fault

      class << self
        # The lock for changes of an Offer. No process is forked meanwhile: in the fork, the lock of the native object would
        # stay locked.
        def changing = @changing ||= Mutex.new
      end
      changing

      # +binding+: a Binding::Ssl. +checking+: as for Settings. +kept+: the settings of each Offer of another process by its
      # key, which are offered instead of the present contents of the files; nil if this process begins with its files. +keep+:
      # true if #take_read is going to ask for the settings. Raises BindError if the address cannot be served with these files.
      def initialize(binding, configuration, checking: false, kept: nil, keep: false)
        @keeps = keep
        name(binding.address, binding.location, Settings.new(binding.tls, configuration, binding.host, checking: checking))
        kept ? take_over(kept[key]) : read
      rescue Invalid => e
        raise BindError.new(location || binding.location, e.message)
      end

      # The object for listeners of an engine: a Native::Tls.
      def native = @tls

      # Reads the files again, and offers their present contents to new connections. Returns true if the offer is different.
      # Raises Invalid for any failure; then everything stays as it was.
      def reload
        read
      rescue Invalid
        sleep(MOMENT)
        signature == tried ? raise : read
      end

      # A value that differs between two states of the files.
      def signature = @settings.signature

      # A value that differs between two offers; nil before the first.
      def fingerprint = @tls&.fingerprint

      # True if the offer can change.
      def files? = @settings.files.any?

      # The DevelopmentCertificate, if it is offered; or nil.
      def development = @settings.development

      # Warnings for people.
      def warnings = @settings.warnings + (@tls ? @tls.warnings : [])

      # The settings of the last reading, for other processes; only once. nil if nothing was read since.
      def take_read = @read.tap { @read = nil }

      # Offers the +settings+ that another process has read. Raises Invalid; then everything stays as it was.
      def take(settings)
        refusing { Offer.changing.synchronize { replace(settings) } }
      end

      private

      def name(address, location, settings)
        @address = address
        @location = location
        @settings = settings
        @key = Digest::SHA256.hexdigest([address, *settings.files].map(&:b).join("\0"))
      end

      # One address with unusable files must not keep all others from being served.
      def take_over(settings)
        settings ? refusing { replace(settings) } : read
      rescue Invalid => e
        @fault = e.message
        replace(@settings.without_certificates)
      end

      def read
        @tried = signature
        refusing do
          settings = @settings.read
          Offer.changing.synchronize { replace(settings) }.tap { @read = settings if @keeps }
        end
      end

      def replace(settings)
        changed = @tls.nil? || @tls.replace(settings)
        @tls ||= Native::Tls.new(settings)
        changed
      end

      # The extension explains the problem in a sentence.
      def refusing
        yield
      rescue Invalid
        raise
      rescue ArgumentError => e
        raise Invalid, e.message
      rescue StandardError, ScriptError, NoMemoryError => e # without a descriptor, a library cannot be loaded
        raise Invalid, Error.sum_up(e)
      end
    end
  end
end
