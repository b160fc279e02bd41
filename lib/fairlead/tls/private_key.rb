# frozen_string_literal: true

module Fairlead
  module Tls
    # A private key that is encrypted. Ruby's own library for that is loaded only if there is one.
    module PrivateKey
      ENCRYPTED = /^-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/

      class << self
        # The key in PEM, not encrypted. +name+: for messages. +command+: prints the password, or is its place in the Store, or nil.
        # Raises Invalid.
        def readable(pem, name, command)
          return pem unless ENCRYPTED.match?(pem)
          raise Invalid, "#{name}: the private key is encrypted; give key_password_command, which prints the password" unless command

          decrypt(pem, name, password_of(command))
        end

        private

        def decrypt(pem, name, password)
          require "openssl"
          OpenSSL::PKey.read(pem, password).private_to_pem
        rescue OpenSSL::PKey::PKeyError
          raise Invalid, "#{name}: the private key cannot be decrypted with the password that was given"
        end

        # Without the line end, as in Puma.
        def password_of(command)
          return Store[command] if Store.place?(command)

          output = IO.popen(["/bin/sh", "-c", command], &:read)
          return output.chomp if $?.success?

          raise Invalid, "key_password_command has failed with exit status #{$?.exitstatus}"
        end
      end
    end
  end
end
