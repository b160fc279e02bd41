# frozen_string_literal: true

require "json"
require "openssl"
require "socket"
require "tmpdir"

module Fairlead
  module Test
    # A certificate authority (RFC 8555) that believes everything and issues at once. A block can change its responses: it
    # gets the name of a resource and returns a Reply to send, a Proc to call with the socket, or nil.
    #
    #   authority = HostileAuthority.new { |name| HostileAuthority::Reply.new(500, {}, "no") if name == :order }
    #   authority.directory   # for `directory:`; `ca` is the file for `ca:`
    #   authority.asked       # => [:directory, :nonce, :account, :order]
    class HostileAuthority
      Reply = Struct.new(:status, :fields, :body)

      DAY = 86_400

      attr_reader :asked, :ca

      # Lifetime of the certificates, and a Proc that changes their text.
      attr_accessor :life, :mangle

      def initialize(address = "127.0.0.1", &script)
        @script = script
        @address = address
        @asked = []
        @life = [Time.now - 60, Time.now + (90 * DAY)]
        @key = OpenSSL::PKey::EC.generate("prime256v1")
        @root = certificate(@key, "/CN=root", [Time.now - DAY, Time.now + (900 * DAY)],
                            "subjectAltName" => "IP:#{address}",
                            "basicConstraints" => "CA:TRUE", "subjectKeyIdentifier" => "hash")
        @folder = Dir.mktmpdir("fairlead-authority-")
        File.write(@ca = File.join(@folder, "ca.pem"), @root.to_pem)
        @server = TCPServer.new(address, 0)
        @thread = Thread.new { loop { serve(@server.accept) } }
      end

      def directory = "#{base}/directory"

      def root_pem = @root.to_pem

      def close
        @thread.kill.join
        @server.close
        FileUtils.rm_rf(@folder)
      end

      # Returns a certificate for a public key, signed by the root.
      def certificate(key, subject, life, extensions)
        OpenSSL::X509::Certificate.new.tap do |certificate|
          certificate.version = 2
          certificate.serial = OpenSSL::BN.rand(100)
          certificate.subject = OpenSSL::X509::Name.parse(subject)
          certificate.issuer = OpenSSL::X509::Name.parse("/CN=root")
          certificate.not_before, certificate.not_after = life
          certificate.public_key = key
          factory = OpenSSL::X509::ExtensionFactory.new(@root || certificate, certificate)
          extensions.each { |name, value| certificate.add_extension(factory.create_extension(name, value)) }
          certificate.sign(@key, "SHA256")
        end
      end

      private

      def base = "https://#{@address.include?(":") ? "[#{@address}]" : @address}:#{@server.addr[1]}"

      def serve(socket)
        Thread.new do
          Thread.current.report_on_exception = false
          client = OpenSSL::SSL::SSLSocket.new(socket, context)
          client.sync_close = true
          client.accept
          nil while answer(client)
        ensure
          socket.close
        end
      end

      def context
        OpenSSL::SSL::SSLContext.new.tap { |context| context.add_certificate(@root, @key) }
      end

      # Responds to a request; false at the end of the connection.
      def answer(client)
        head = client.gets("\r\n\r\n") or return false
        text = client.read(head[/^content-length: (\d+)/i, 1].to_i)
        name = head[%r{\A\w+ /(\w+)}, 1].to_sym
        @asked << name
        reply = @script&.call(name) || default(name, text.empty? ? nil : JSON.parse(text))
        return reply.call(client) && false if reply.is_a?(Proc)

        send_reply(client, reply, head.start_with?("HEAD"))
        true
      end

      def send_reply(client, reply, head_only)
        fields = { "replay-nonce" => "nonce#{@asked.size}", "content-length" => reply.body.bytesize, "content-type" => "application/json" }
        fields.update(reply.fields)
        client.write("HTTP/1.1 #{reply.status} x\r\n#{fields.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n")
        client.write(reply.body) unless head_only
      end

      def default(name, message)
        case name
        when :directory then json(newNonce: "#{base}/nonce", newAccount: "#{base}/account", newOrder: "#{base}/order", renewalInfo: "#{base}/renewal")
        when :account, :order then json({ **order, **(polled?(message) ? {} : { status: "ready" }) }, "location" => "#{base}/#{name}")
        when :authorization, :challenge then json(authorization)
        when :finalize then json(issue(message))
        when :certificate then Reply.new(200, { "content-type" => "application/pem-certificate-chain" }, @issued)
        else Reply.new(200, {}, "")
        end
      end

      def json(values, fields = {}) = Reply.new(200, fields, JSON.generate(values))

      # A request without a payload polls a resource (RFC 8555 §6.3).
      def polled?(message) = message["payload"].empty?

      def order
        { status: @issued ? "valid" : "ready", authorizations: ["#{base}/authorization"],
          finalize: "#{base}/finalize", certificate: "#{base}/certificate" }
      end

      def authorization
        { identifier: { type: "dns", value: "a.example" }, status: "valid", type: "http-01", url: "#{base}/challenge", token: "token",
          challenges: [{ type: "http-01", url: "#{base}/challenge", token: "token", status: "pending" }] }
      end

      def issue(message)
        payload = JSON.parse(message["payload"].tr("-_", "+/").unpack1("m"))
        request = OpenSSL::X509::Request.new(payload["csr"].tr("-_", "+/").unpack1("m"))
        leaf = certificate(request.public_key, "/CN=leaf", life, "subjectAltName" => "DNS:a.example", "authorityKeyIdentifier" => "keyid:always")
        @issued = leaf.to_pem + @root.to_pem
        @issued = mangle.call(@issued) if mangle
        { **order, status: "valid" }
      end
    end
  end
end
