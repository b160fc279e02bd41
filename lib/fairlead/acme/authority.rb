# frozen_string_literal: true

require "uri"

module Fairlead
  module Acme
    # The input of the Program: an order and its authority.
    class Authority
      # Variables with a proxy, in order of precedence; and hosts that need no proxy.
      PROXIES = %w[https_proxy HTTPS_PROXY http_proxy].freeze
      OWN = /\A(?:localhost|127\.[\d.]+|::1)\z/
      private_constant :PROXIES, :OWN

      # +account+: an Account.
      def initialize(order, account)
        @order = order
        @account = account
      end

      # +certificate+: the present Certificate, or nil.
      def input(task, challenge: "http-01", csr: "", certificate: nil)
        {
          task: task, directory: @order.directory, hosts: @order.hosts, contact: @order.contact, challenge: challenge,
          external_account: external_account, ca: @order.ca, account: @account.to_h, csr: csr.bytes,
          replaces: certificate&.identifier, proxy: proxy, agent: "fairlead/#{VERSION} (ruby #{RUBY_VERSION})"
        }
      end

      private

      def external_account
        { kid: @order.eab_kid, key: @order.eab_hmac.tr("-_", "+/").unpack1("m").bytes } if @order.eab_kid
      end

      # The proxy of the environment. URI#find_proxy would wait for name servers.
      def proxy
        address = URI.parse(@order.directory)
        text = ENV.values_at(*PROXIES).find { |value| !value.to_s.empty? }
        return if text.nil? || address.hostname.match?(OWN) || !URI::Generic.use_proxy?(address.hostname, nil, address.port, exceptions)

        # The scheme may be missing, as in curl.
        proxy = URI.parse(text.include?("://") ? text : "http://#{text}")
        credentials = [proxy.user, proxy.password].compact.map { |part| URI.decode_www_form_component(part) }.join(":")
        { host: proxy.hostname, port: proxy.port, authorization: ("Basic #{[credentials].pack("m0")}" unless credentials.empty?) }
      rescue URI::Error
        nil
      end

      def exceptions = (ENV["no_proxy"] || ENV["NO_PROXY"]).to_s
    end
  end
end
