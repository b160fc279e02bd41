# frozen_string_literal: true

require "digest"

module Fairlead
  module Acme
    # A configured certificate: its hosts, its authority, and details of the order.
    #
    # hosts      the names in it
    # directory  the address of the authority
    # contact    addresses of the person to write to: "mailto:…"
    # terms_of_service_agreed  true if the configuration says so; the authority requires it
    # challenge  one of CHALLENGES; nil if the listeners decide
    # eab_kid, eab_hmac  the external account (RFC 8555 §7.3.4), for an authority that wants one
    # ca         a file with the certificate of the issuer of the authority's own certificate
    Order = Struct.new(:hosts, :directory, :contact, :terms_of_service_agreed, :challenge, :eab_kid, :eab_hmac, :ca, keyword_init: true) do
      def name = hosts.first

      # The name of its files, without an extension. Orders with different hosts have different names, even if the first host is
      # the same.
      def file_name
        return name if hosts.one? && name.length <= Order::FILE_NAME_MOST

        "#{name[0, Order::FILE_NAME_MOST]}+#{Digest::SHA256.hexdigest(hosts.sort.join(","))[0, 12]}"
      end

      # The host name of the authority, for people.
      def authority = directory[%r{\Ahttps://([^/]+)}, 1]

      def to_s = hosts.join(", ")

      # Without the secret.
      def inspect = "#<acme #{self}>"
    end

    # The longest host in a file name, so that the system accepts the whole name (255 bytes).
    Order::FILE_NAME_MOST = 180

    # The default authority: Let's Encrypt.
    Order::DIRECTORY = "https://acme-v02.api.letsencrypt.org/directory"
  end
end
