# frozen_string_literal: true

module Fairlead
  module Acme
    # The time at which an authority wants a certificate to be renewed (ARI, RFC 9773): earlier than we would, for instance, before
    # it revokes many certificates. It is asked again and again; no suggestion makes us order more than once a day.
    class Suggestion
      HOUR = 3600
      DAY = 24 * HOUR

      # How long after a start the authority is asked first, in seconds: a server that starts again and again asks nobody.
      FIRST = 60

      # The time of the renewal; nil if there is no suggestion.
      attr_reader :at

      # Whether it is time to ask about this certificate.
      def due?(certificate, now = Time.now)
        begin_with(certificate, now) unless certificate.identifier == @identifier
        !@identifier.nil? && now >= @ask_at
      end

      # +first+, +last+: between which times, in seconds since 1970. +again+: in how many seconds to ask again.
      def take(certificate, first, last, again, now = Time.now)
        @ask_at = now + again.clamp(HOUR, DAY)
        time = Time.at(first + ((last - first) * certificate.fraction).to_f)
        @at = [time, certificate.begins_at + [DAY, certificate.life / 3].min].max if last >= first
      rescue RangeError
        nil # no time that a clock can have
      end

      # The authority has not answered, or does not know this.
      def none(now = Time.now)
        @ask_at = now + DAY
      end

      private

      # A new certificate has none of the former one's.
      def begin_with(certificate, now)
        @identifier = certificate.identifier
        @at = nil
        @ask_at = [now + FIRST, certificate.begins_at + HOUR].max
      end
    end
  end
end
