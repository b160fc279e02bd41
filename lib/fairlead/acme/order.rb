# frozen_string_literal: true

require "digest"

module Fairlead
  module Acme
    # A certificate that the configuration asks for: for which hosts, from which authority, and how it is to be ordered.
    #
    # hosts      the names in it
    # directory  the address of the authority
    # contact    addresses of the person to write to: "mailto:…"
    # terms_of_service_agreed  whether the configuration says so; the authority wants to know
    # challenge  one of CHALLENGES; nil if the listeners decide
    # eab_kid, eab_hmac  the external account (RFC 8555 §7.3.4), for an authority that wants one
    # ca         a file with the certificate of those who have issued the authority's own
    Order = Struct.new(:hosts, :directory, :contact, :terms_of_service_agreed, :challenge, :eab_kid, :eab_hmac, :ca, keyword_init: true) do
      def name = hosts.first

      # The name of its files, without an extension: orders for other hosts have others, even if the first host is the same.
      def file_name
        return name if hosts.one? && name.length <= Order::FILE_NAME_MOST

        "#{name[0, Order::FILE_NAME_MOST]}+#{Digest::SHA256.hexdigest(hosts.sort.join(","))[0, 12]}"
      end

      # The host that is the authority, for people.
      def authority = directory[%r{\Ahttps://([^/]+)}, 1]

      def to_s = hosts.join(", ")

      # Without the secret.
      def inspect = "#<acme #{self}>"
    end

    # The longest part of a file's name that is a host, so that the system accepts the whole name (255 bytes).
    Order::FILE_NAME_MOST = 180

    # The authority, if none is named: Let's Encrypt.
    Order::DIRECTORY = "https://acme-v02.api.letsencrypt.org/directory"
  end
end
