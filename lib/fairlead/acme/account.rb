# frozen_string_literal: true

require "json"
require "openssl"

module Fairlead
  module Acme
    # The stored account with an authority (RFC 8555 §7.3): its key, its address, and the contacts that the authority may write
    # to. The first order makes it. Unusable files count as missing.
    class Account
      CURVE = "prime256v1"

      # The largest file to read, in bytes.
      MOST_BYTES = 64 * 1024

      # Suffix of an unusable key when a new key replaces it.
      UNUSABLE = ".unusable"

      # +log+: for #acme_state_unusable; may be nil.
      def initialize(order, store, log: nil)
        @order = order
        @store = store
        @log = log
      end

      # The account for the program; nil if there is none.
      def to_h
        key = read_key or return
        values = read_values
        { key: key.private_to_der.bytes, url: values["url"], contact: Array(values["contact"]).grep(String) }
      end

      # Stores the account. +key+: PKCS #8 in DER, if it is new.
      def save(url, key)
        keep_key(OpenSSL::PKey.read(key.pack("C*"))) if key
        @store.folder.write(*@store.account(@order), JSON.pretty_generate(url: url, contact: @order.contact) << "\n")
      end

      # The authority no longer knows the address of the account.
      def forget = @store.folder.delete(*@store.account(@order))

      private

      # The address of an account belongs to its key.
      def keep_key(key)
        forget
        name = @store.account_key(@order)
        path = @store.folder.join(*name)
        File.rename(path, path + UNUSABLE) if File.exist?(path) && read_key.nil?
        @store.folder.write(*name, key.private_to_pem)
      end

      def read_key
        read(@store.account_key(@order)) do |text|
          key = OpenSSL::PKey.read(text, "")
          usable = key.is_a?(OpenSSL::PKey::EC) && key.private? && key.group.curve_name == CURVE
          usable ? key : raise(ArgumentError, "it is no key of the curve P-256")
        end
      end

      # With an invalid address, the authority finds the account by its key.
      def read_values
        values = read(@store.account(@order)) { |text| JSON.parse(text) }
        return {} unless values.is_a?(Hash)

        values["url"].to_s.start_with?("https://") ? values : values.except("url")
      end

      def read(name)
        text = @store.folder.read(*name, most: MOST_BYTES)
        yield text if text
      rescue SystemCallError, OpenSSL::OpenSSLError, JSON::ParserError, EncodingError, ArgumentError => e
        @log&.acme_state_unusable("#{@store.folder.join(*name)}: #{Problem.plain(Error.reason(e), 100)}")
        nil
      end
    end
  end
end
