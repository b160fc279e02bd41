# frozen_string_literal: true

module Fairlead
  module Acme
    # The state: which file is where in the folder `acme_dir`. Accounts and certificates of different authorities do not mix, so
    # that one can be tried out beside another.
    #
    #   AUTHORITY/account.pem, account.json             the key of the account; its address
    #   AUTHORITY/certificates/HOST.pem                 the key of a certificate, the certificate, and those above it
    #   AUTHORITY/certificates/HOST.failure.json        only while the last attempt has failed
    #   challenges/http-01/TOKEN                        only while the authority looks
    #   challenges/tls-alpn-01/HOST.pem
    class Store
      attr_reader :folder

      def initialize(path)
        @folder = StateFolder.new(path)
      end

      # Makes the folder. Raises Error if nothing can be written there.
      def prepare
        folder.exclusively { nil }
      rescue SystemCallError => e
        raise Error, "acme_dir: nothing can be kept in #{folder.path}: #{Error.reason(e)}"
      end

      # For the engine.
      def challenges = folder.join("challenges")

      def account_key(order) = [authority(order), "account.pem"]

      def account(order) = [authority(order), "account.json"]

      def certificate(order) = [authority(order), "certificates", "#{order.name}.pem"]

      def failure(order) = [authority(order), "certificates", "#{order.name}.failure.json"]

      def answer(challenge, name) = ["challenges", challenge, name]

      # The path of the certificate, whether it is there or not.
      def path_of(order) = folder.join(*certificate(order))

      private

      # "acme-v02.api.letsencrypt.org-directory"
      def authority(order) = order.directory.delete_prefix("https://").gsub(/[^\w.-]+/, "-").sub(/\A\.+/, "").delete_suffix("-")
    end
  end
end
