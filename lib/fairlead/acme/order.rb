# frozen_string_literal: true

module Fairlead
  module Acme
    # A certificate that the configuration asks for: for which hosts, from which authority, and how it is to be ordered.
    #
    # hosts      the names in it; the first one also names its file
    # directory  the address of the authority
    # contact    addresses of the person to write to: "mailto:…"
    # terms_of_service_agreed  whether the configuration says so; the authority wants to know
    # challenge  one of CHALLENGES; nil if the listeners decide
    # eab_kid, eab_hmac  the external account (RFC 8555 §7.3.4), for an authority that wants one
    # ca         a file with the certificate of those who have issued the authority's own
    Order = Struct.new(:hosts, :directory, :contact, :terms_of_service_agreed, :challenge, :eab_kid, :eab_hmac, :ca, keyword_init: true) do
      def name = hosts.first

      # The host that is the authority, for people.
      def authority = directory[%r{\Ahttps://([^/]+)}, 1]

      def to_s = hosts.join(", ")

      # Without the secret.
      def inspect = "#<acme #{self}>"
    end

    # The authority, if none is named: Let's Encrypt.
    Order::DIRECTORY = "https://acme-v02.api.letsencrypt.org/directory"
  end
end
