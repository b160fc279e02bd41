# frozen_string_literal: true

module Fairlead
  module Tls
    # An encrypted private key. Ruby's library for it is loaded only if there is one.
    module PrivateKey
      ENCRYPTED = /^-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/

      # Seconds that the command may take, and bytes that it may print. OpenSSL takes no longer password.
      PATIENCE = 30
      LONGEST = 1024

      class << self
        # The key in PEM, decrypted. +name+: for messages. +command+: prints the password, or is its place in the Store, or nil.
        # Raises Invalid.
        def readable(pem, name, command, patience: PATIENCE)
          return pem unless ENCRYPTED.match?(pem)
          raise Invalid, "#{name}: the private key is encrypted; give key_password_command, which prints the password" unless command

          decrypt(pem, name, password_of(command, patience))
        end

        private

        def decrypt(pem, name, password)
          require "openssl"
          OpenSSL::PKey.read(pem, password).private_to_pem
        rescue OpenSSL::PKey::PKeyError, ArgumentError
          raise Invalid, "#{name}: the private key cannot be decrypted with the password that was given"
        end

        # Without the line end, as in Puma.
        def password_of(command, patience)
          return Store[command] if Store.place?(command)

          output, status = run(command, RunningTime::Limit.new(patience))
          output = output.chomp
          raise Invalid, "key_password_command prints more than #{LONGEST} bytes, which is no password" if output.bytesize > LONGEST
          raise Invalid, "key_password_command has not ended after #{patience} s" if status == :late
          raise Invalid, "key_password_command was ended by signal #{status.termsig}" if status&.signaled?
          raise Invalid, "key_password_command has failed with exit status #{status.exitstatus}" if status&.exitstatus&.positive?

          output
        end

        # The output of the command, and its Process::Status: :late if it takes too long, nil if other code in this process has
        # taken the status. A process that the command leaves running on purpose, such as an agent that keeps the password, goes
        # on.
        def run(command, limit)
          reader, writer = IO.pipe
          group = ProgramGroup.new("/bin/sh", "-c", command, out: writer)
          writer.close
          output, is_complete = read(reader, limit)
          reader.close
          [output, is_complete ? group.wait(limit) : :late]
        rescue SystemCallError => e
          raise Invalid, "key_password_command cannot be run: #{Error.plain(e)}"
        ensure
          [reader, writer].compact.each(&:close)
          group&.stop
        end

        # Reads until the command has printed everything, or too much. Returns the output, and true if the limit was kept.
        def read(reader, limit)
          output = +""
          is_complete = limit.wait do |seconds|
            next unless reader.wait_readable(seconds)

            part = reader.read_nonblock(LONGEST, exception: false)
            output << part if part.is_a?(String)
            part.nil? || output.bytesize > LONGEST + 1
          end
          [output, is_complete]
        end
      end
    end
  end
end
