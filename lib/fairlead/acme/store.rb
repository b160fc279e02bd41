# frozen_string_literal: true

module Fairlead
  module Acme
    # The state: the paths of the files in the folder `acme_dir`. Accounts and certificates of different authorities are
    # separate, so that you can try another authority beside the current one.
    #
    #   AUTHORITY/account.pem, account.json             the key of the account; its address
    #   AUTHORITY/certificates/HOST.pem                 the key of a certificate, the certificate, and the certificates above it
    #   AUTHORITY/certificates/HOST.failure.json        only while the last attempt has failed
    #   challenges/http-01/TOKEN                        only while the authority looks
    #   challenges/tls-alpn-01/HOST.pem
    #   locks/HOST                                      locked while a certificate for this host is ordered
    #
    # With several hosts, HOST is the first one and a digest of all.
    class Store
      # Bytes that must fit on the disk before an authority is asked: more than a certificate, its answers and an account take.
      ROOM = 64 * 1024

      # The longest life of an answer to a challenge, in seconds. Older answers are left over from a killed process.
      ANSWER_LIFE = 3600

      attr_reader :folder

      def initialize(path)
        @folder = StateFolder.new(path)
      end

      # The reason why nothing can be stored there, as far as known without writing; or nil.
      def problem
        reason = folder.reason_against
        "nothing can be kept in #{folder.path}: #{reason}" if reason
      end

      # Makes the folder, and deletes files that killed processes have left there. Raises Error if nothing can be written there.
      def prepare
        folder.exclusively do
          folder.sweep
          CHALLENGES.each { |challenge| sweep_answers(challenge) }
        end
      rescue SystemCallError => e
        raise Error, "acme_dir: nothing can be kept in #{folder.path}: #{Error.reason(e)}"
      end

      # Raises SystemCallError if the results of an order could not be stored.
      def check_room(order)
        [certificate(order)[0..-2], ["challenges"]].each do |place|
          name = [*place, "room.#{Process.pid}.#{Thread.current.object_id}"]
          folder.write(*name, "0" * ROOM)
        ensure
          folder.delete(*name)
        end
      end

      # Calls the block unless another process orders a certificate for one of these hosts; then it returns false.
      def exclusively_for(hosts, &block)
        host, *others = hosts.sort
        folder.exclusively("locks", host[0, Order::FILE_NAME_MOST]) { others.any? ? exclusively_for(others, &block) : yield }
      end

      # The folder of answers, for the engine.
      def challenges = folder.join("challenges")

      def account_key(order) = [authority(order), "account.pem"]

      def account(order) = [authority(order), "account.json"]

      def certificate(order) = [authority(order), "certificates", "#{order.file_name}.pem"]

      def failure(order) = [authority(order), "certificates", "#{order.file_name}.failure.json"]

      def answer(challenge, name) = ["challenges", challenge, name]

      # The path of the certificate, which may be missing.
      def path_of(order) = folder.join(*certificate(order))

      # A value that differs between two states of the file called +name+, found without reading it.
      def state_of(name)
        stat = File.stat(folder.join(*name))
        [stat.dev, stat.ino, stat.mtime, stat.size]
      rescue SystemCallError => e
        e.class
      end

      private

      def sweep_answers(challenge)
        folder.names("challenges", challenge).each { |name| folder.sweep_file(*answer(challenge, name), Time.now - ANSWER_LIFE) }
      end

      # "acme-v02.api.letsencrypt.org-directory"
      def authority(order) = order.directory.delete_prefix("https://").gsub(/[^\w.-]+/, "-").sub(/\A\.+/, "").delete_suffix("-")
    end
  end
end
