# frozen_string_literal: true

module Fairlead
  class Binding
    # ssl://HOST:PORT?cert=PATH&key=PATH: TLS on a TCP address. Tls::Parameters has the rest of the query.
    class Ssl < Tcp
      # The TLS parameters of the query: a Tls::Parameters.
      attr_reader :tls

      # Certificates as text, which are moved out of the address.
      TEXTS = { "cert_pem" => "cert", "key_pem" => "key" }.freeze
      private_constant :TEXTS

      class << self
        # The address for +options+ of Puma's `ssl_bind`: { cert: "a.pem", key: "a.key", verify_mode: "peer", … }. Lists are for
        # several certificates.
        def address_for(host, port, options)
          require "uri"
          pairs = options.flat_map { |name, value| [*value].map { |one| [name.to_s, text_of(name.to_s, one)] } }
          base = Binding.address_for_port(port, host).sub("tcp://", "ssl://")
          pairs.empty? ? base : "#{base}?#{URI.encode_www_form(pairs)}"
        end

        private

        def text_of(name, value) = TEXTS.key?(name) ? Tls::Store.add(value) : value.to_s
      end

      # With port 0 there may be several addresses with the same location that differ in their requirements for clients.
      def covers?(listener) = port.zero? ? listener.binding == address : super

      # Marks listeners as listeners of this address.
      def claim(listeners) = super.each { |listener| listener.ssl_address = address }

      private

      def known_parameters = super + Tls::Parameters::NAMES + Tls::Parameters::REFUSED.keys

      def read_parameters(pairs)
        pairs = pairs.map { |name, value| TEXTS.key?(name) ? [TEXTS.fetch(name), stored(value)] : [name, value] }
        if @parameters.keys.intersect?(TEXTS.keys)
          query = URI.encode_www_form(pairs)
          @address = "#{location}?#{query}"
        end
        @tls = Tls::Parameters.new(pairs)
      rescue Tls::Invalid => e
        raise BindError.new(location, e.message)
      end

      def stored(text) = Tls::Store.place?(text) ? text : Tls::Store.add(text)
    end
  end
end
