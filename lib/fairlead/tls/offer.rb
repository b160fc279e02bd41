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

      # The name by which processes of a server speak of it: the same where the address and its files are the same.
      attr_reader :key

      # The state of the files when they were read last, whatever came of it; nil before.
      attr_reader :tried

      # Why there is no certificate, if another process has handed none over and the files cannot be used; or nil.
      attr_reader :fault

      class << self
        # The lock under which an Offer changes. No process is forked meanwhile: the lock of the native object would stay closed in it.
        def changing = @changing ||= Mutex.new
      end
      changing

      # +binding+: a Binding::Ssl. +checking+: as for Settings. Raises BindError if it cannot be served so.
      # +kept+: the settings of each Offer of another process by its key, which are offered in place of what is in the files now; nil if
      # this process begins with its files. +keep+: whether #take_read is going to ask for what was read.
      def initialize(binding, configuration, checking: false, kept: nil, keep: false)
        @keeps = keep
        name(binding.address, binding.location, Settings.new(binding.tls, configuration, binding.host, checking: checking))
        kept ? take_over(kept[key]) : read
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

      # The settings that were read last, once: for other processes. nil if nothing was read since.
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

      # One address whose files cannot be used must not keep all others from being served.
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
