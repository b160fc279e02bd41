# frozen_string_literal: true

require "json"
require "openssl"

module Fairlead
  module Acme
    # One order from its beginning to its end (RFC 8555 §7.4): the authority looks whether the hosts are ours, and issues a
    # certificate, which is then in the Store. Raises a Problem.
    class Issuance
      PEM_CHAIN = "application/pem-certificate-chain"

      # +challenge+: one of CHALLENGES.
      def initialize(order, store, challenge)
        @order = order
        @store = store
        @challenge = challenge
        @answers = Answers.new(store)
        @account = Account.new(order, store)
        @client = Client.new(order.directory, @account.key, Connection.new(ca: order.ca))
      end

      def run
        @answers.take_away
        @account.enter(@client)
        place_order
        prove
        finalize
      rescue Problem => e
        @account.forget if e.type == "accountDoesNotExist"
        raise
      ensure
        @answers.take_away
        @client.close
      end

      private

      def place_order
        response = @client.post(@client.address("newOrder"), { identifiers: @order.hosts.map { |host| { type: "dns", value: host } } })
        @url = response.headers["location"]
        @placed = response.body
      end

      # All answers are there before the authority is asked to look for the first one. It may know some hosts from earlier.
      def prove
        pending = @placed.fetch("authorizations").to_h { |url| [url, @client.post(url).body] }.reject { |_, body| body["status"] == "valid" }
        challenges = pending.values.map { |authorization| answer(authorization) }
        challenges.each { |challenge| @client.post(challenge["url"], {}) }
        pending.each_key { |url| check(@client.wait_for(url)) }
      end

      def answer(authorization)
        host = authorization.dig("identifier", "value")
        challenge = authorization["challenges"].find { |offered| offered["type"] == @challenge } || none_offered(host, authorization)
        @answers.give(@challenge, host: host, token: challenge["token"], authorization: @client.key.authorization(challenge["token"]))
        challenge
      end

      def none_offered(host, authorization)
        offered = authorization["challenges"].map { |challenge| challenge["type"] }.join(", ")
        raise Problem.new("unsupportedChallenge", "#{host}: the authority does not offer #{@challenge}, but #{offered}")
      end

      def check(authorization)
        return if authorization["status"] == "valid"

        host = authorization.dig("identifier", "value")
        error = authorization["challenges"].filter_map { |challenge| challenge["error"] }.first
        raise Client.problem(error, prefix: "#{host}: ") if error

        raise Problem.new("unauthorized", "#{host}: the authorization is #{authorization["status"]}")
      end

      def finalize
        ready = decided(%w[pending])
        key = OpenSSL::PKey::EC.generate(AccountKey::CURVE)
        @client.post(ready["finalize"], { csr: AccountKey.encode(request(key).to_der) })
        chain = @client.post(decided(%w[ready processing])["certificate"], accept: PEM_CHAIN).body
        keep(chain, key)
      end

      # The order, in another state than these.
      def decided(waiting)
        order = @client.wait_for(@url, waiting)
        raise Client.problem(order["error"] || {}, prefix: "the order is invalid: ") if order["status"] == "invalid"

        order
      end

      def request(key)
        names = OpenSSL::X509::ExtensionFactory.new.create_extension(Certificate::SAN, @order.hosts.map { |host| "DNS:#{host}" }.join(","))
        extensions = OpenSSL::ASN1::Set.new([OpenSSL::ASN1::Sequence.new([names])])
        OpenSSL::X509::Request.new.tap do |request|
          request.version = 0
          request.subject = OpenSSL::X509::Name.new
          request.public_key = key
          request.add_attribute(OpenSSL::X509::Attribute.new("extReq", extensions))
          request.sign(key, "SHA256")
        end
      end

      # Nothing takes the place of a good certificate that is not one, too.
      def keep(chain, key)
        good = good?(Certificate.parse(chain), key)
        raise Problem.new("badCertificate", "the authority has issued something else than what was ordered") unless good

        @store.folder.write(*@store.certificate(@order), key.private_to_pem + chain)
      end

      def good?(certificate, key) = !certificate.nil? && certificate.belongs_to?(key) && certificate.for?(@order) && !certificate.expired?
    end
  end
end
