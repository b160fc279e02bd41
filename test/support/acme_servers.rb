# frozen_string_literal: true

require_relative "pebble"
require_relative "servers"

module Fairlead
  module Test
    # For test cases that start servers which order certificates. The authorities start once for all tests of a file.
    module AcmeServers
      include Servers

      APP = "run ->(env) { [200, {}, ['the application']] }"

      # Lifetime of the strict authority's certificates, in seconds.
      VALIDITY = 9

      # The external account that the strict authority knows.
      EXTERNAL = { eab_kid: "kid-1", eab_hmac: "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W" }.freeze

      class << self
        def pebble = @pebble ||= start

        def strict
          @strict ||= start(externalAccountBindingRequired: true, externalAccountMACKeys: { EXTERNAL[:eab_kid] => EXTERNAL[:eab_hmac] },
                            # Older versions of Pebble know the first setting, newer ones the second.
                            certificateValidityPeriod: VALIDITY, profiles: { default: { description: "short", validityPeriod: VALIDITY } })
        end

        private

        def start(**settings)
          Pebble.new(**settings).start.tap { |pebble| Minitest.after_run { pebble.stop } }
        end
      end

      # The usual authority, and a strict one: its certificates are short-lived, and it demands an external account.
      def pebble = AcmeServers.pebble
      def strict = AcmeServers.strict

      # Runs a server that orders a certificate for each of +hosts+. +found+: the authority can reach the server.
      def with_acme(*hosts, arguments: [], bind: "tcp://127.0.0.1:0", authority: pebble, found: true, **keywords)
        lead_nowhere(authority)
        flags = hosts.flat_map { |host| ["--acme", authority.order(host, **keywords)] }
        server = launch(APP, *arguments, "--acme-dir", "state", *flags, bind: bind)
        wait_until("the addresses") { server.addresses.any? || server.exited? }
        server.wait_for_output(ServerProcess::READY) unless found
        lead_to(server, authority) if found
        server.wait_for_output(ServerProcess::READY)
        server
      end

      def lead_to(server, authority = pebble)
        addresses = server.addresses.to_h { |address| [address[/\A\w+/], Integer(address[/\d+\z/], 10)] }
        authority.http.target, authority.tls.target = addresses.values_at("http", "https")
      end

      def lead_nowhere(authority = pebble)
        authority.http.target = authority.tls.target = nil
      end

      # Path of a host's certificate; path of the record of a failed attempt. Either is empty if the file does not exist.
      def pem_file(server, host) = Dir.glob(server.path("state/*/certificates/#{host}{,+*}.pem")).first.to_s
      def failure_file(server, host) = Dir.glob(server.path("state/*/certificates/#{host}{,+*}.failure.json")).first.to_s

      # Returns the certificate of a host. The same file contains its key.
      def certificate(server, host)
        text = File.read(pem_file(server, host))
        certificate = OpenSSL::X509::Certificate.new(text)

        assert certificate.check_private_key(OpenSSL::PKey.read(text))
        certificate
      end

      def hosts_of(certificate)
        names = certificate.extensions.find { |extension| extension.oid == "subjectAltName" }.value.split(", ")
        names.map { |name| name.delete_prefix("DNS:") }.sort
      end
    end
  end
end
