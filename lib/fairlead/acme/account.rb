# frozen_string_literal: true

require "json"

module Fairlead
  module Acme
    # The account of an authority (RFC 8555 §7.3). It is made with the first order and kept.
    class Account
      def initialize(order, store)
        @order = order
        @store = store
      end

      # The key, which is made now if there is none.
      def key
        @key ||= begin
          pem = @store.folder.read(*@store.account_key(@order))
          AccountKey.load(pem).tap { |key| @store.folder.write(*@store.account_key(@order), key.to_pem) unless pem }
        end
      end

      # Tells +client+ which account it is, after making or changing it.
      def enter(client)
        known = saved
        client.account = known["url"]
        if client.account.nil?
          register(client)
        elsif known["contact"] != @order.contact
          client.post(client.account, { contact: @order.contact })
          save(client)
        end
      end

      # The authority does not know it any more.
      def forget = @store.folder.delete(*@store.account(@order))

      private

      def register(client)
        payload = { termsOfServiceAgreed: @order.terms_of_service_agreed, contact: @order.contact }
        payload[:externalAccountBinding] = external_account(client) if @order.eab_kid
        client.account = client.post(client.address("newAccount"), payload).headers["location"]
        save(client)
      end

      def external_account(client)
        header = { kid: @order.eab_kid, url: client.address("newAccount") }
        AccountKey.sign_shared(header, JSON.generate(client.key.to_h), @order.eab_hmac)
      end

      def saved = JSON.parse(@store.folder.read(*@store.account(@order)) || "{}")

      def save(client)
        @store.folder.write(*@store.account(@order), JSON.pretty_generate(url: client.account, contact: @order.contact) << "\n")
      end
    end
  end
end
