# frozen_string_literal: true

require "digest/sha2"

module Fairlead
  module Tls
    # What the listeners of one `ssl://` address offer. Engines use the native object, so a new certificate needs no new engine.
    class Offer
      # Files that do not belong together may be just about to be replaced, one after the other; how long that may take, in seconds.
      MOMENT = 0.1

      # The address, and the address without its query.
      attr_reader :address, :location

      # The name by which processes of a server speak of it.
      attr_reader :key

      # The state of the files when they were read last, whatever came of it; nil before.
      attr_reader :tried

      class << self
        # The lock under which an Offer changes. No process is forked meanwhile: the lock of the native object would stay closed in it.
        def changing = @changing ||= Mutex.new

        # One whose files another process has read: #reload reads them. +settings+: its Settings.
        def unread(address, location, settings) = allocate.tap { |offer| offer.send(:name, address, location, settings) }
      end
      changing

      # +binding+: a Binding::Ssl. +checking+: as for Settings. Raises BindError if it cannot be served so.
      def initialize(binding, configuration, checking: false)
        name(binding.address, binding.location, Settings.new(binding.tls, configuration, binding.host, checking: checking))
        read
      rescue Invalid => e
        raise BindError.new(location || binding.location, e.message)
      end

      # What listeners of an engine take: a Native::Tls.
      def native = @tls

      # Reads the files again, and offers what is in them now to those who connect from now on. Returns whether that is different.
      # Raises Invalid, whatever has gone wrong; then everything stays as it was.
      def reload
        read
      rescue Invalid
        sleep(MOMENT)
        signature == tried ? raise : read
      end

      # What tells one state of the files from another one.
      def signature = @settings.signature

      # What tells one offer from another one; nil before the first.
      def fingerprint = @tls&.fingerprint

      # Whether anything can change.
      def files? = @settings.files.any?

      # The DevelopmentCertificate, if that is what is offered; or nil.
      def development = @settings.development

      # What people should know.
      def warnings = @settings.warnings + (@tls ? @tls.warnings : [])

      # What another process takes for Offer.unread.
      def description = [address, location, @settings]

      private

      def name(address, location, settings)
        @address = address
        @key = Digest::SHA256.hexdigest(address)
        @location = location
        @settings = settings
      end

      def read
        @tried = signature
        refusing do
          settings = @settings.read
          Offer.changing.synchronize { replace(settings) }
        end
      end

      def replace(settings)
        return @tls.replace(settings) if @tls

        @tls = Native::Tls.new(settings)
        true
      end

      # The extension says in a sentence what is wrong.
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
