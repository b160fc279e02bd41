# frozen_string_literal: true

module Fairlead
  module Tls
    # What the listeners of one `ssl://` address offer. Engines use the native object, so a new certificate needs no new engine.
    class Offer
      # Files that do not belong together may be just about to be replaced, one after the other; how long that may take, in seconds.
      MOMENT = 0.1

      # The address, and the address without its query.
      attr_reader :address, :location

      # +binding+: a Binding::Ssl. +checking+: as for Settings. Raises BindError if it cannot be served so.
      def initialize(binding, configuration, checking: false)
        @address = binding.address
        @location = binding.location
        @settings = Settings.new(binding.tls, configuration, binding.host, checking: checking)
        @loaded = @settings.signature
        @tls = refusing { Native::Tls.new(@settings.read) }
      rescue Invalid => e
        raise BindError.new(location, e.message)
      end

      # What listeners of an engine take: a Native::Tls.
      def native = @tls

      # Reads the files again, and offers what is in them now to those who connect from now on. Raises Invalid if that cannot be
      # done; then everything stays as it was.
      def reload
        replace
      rescue Invalid
        sleep(MOMENT)
        change ? replace : raise
      end

      # Whether the files have changed since they were read, and the state in which they are.
      def change
        signature = @settings.signature
        signature unless signature == @loaded
      end

      # Whether anything can change.
      def files? = @settings.files.any?

      # The DevelopmentCertificate, if that is what is offered; or nil.
      def development = @settings.development

      # What people should know.
      def warnings = @settings.warnings + @tls.warnings

      private

      def replace
        @loaded = @settings.signature
        refusing { @tls.replace(@settings.read) }
      end

      # The extension says in a sentence what is wrong.
      def refusing
        yield
      rescue ArgumentError => e
        raise Invalid, e.message
      end
    end
  end
end
