# frozen_string_literal: true

require "openssl"
require "tmpdir"
require "fileutils"

module Fairlead
  module Test
    # An authority that issues the certificates which tests usually need. It uses elliptic-curve keys, because they are quick
    # to make, and caches the certificates for the run.
    class Authority
      DAY = 24 * 3600

      # A certificate and its key.
      Pair = Struct.new(:certificate, :key) do
        def pem = certificate.to_pem
        def key_pem = key.private_to_pem
      end

      class << self
        # One authority for all tests of the process, and one that nobody trusts.
        def usual = @usual ||= new("Fairlead test authority")
        def other = @other ||= new("Another authority")
      end

      attr_reader :certificate

      def initialize(name)
        @key = OpenSSL::PKey::EC.generate("prime256v1")
        @serial = 1
        @issued = {}
        extensions = { "basicConstraints" => "critical,CA:TRUE", "keyUsage" => "critical,keyCertSign,cRLSign" }
        @certificate = build("/CN=#{name}", @key, nil, **extensions)
      end

      def pem = @certificate.to_pem

      # Its own certificate, for a server, as `openssl req -x509` makes it.
      def itself = Pair.new(@certificate, @key)

      # Certificate for a server with these hosts and the loopback addresses. +ends+: expiry, in days from now. +number+:
      # distinguishes certificates that are otherwise equal.
      def server(*hosts, ends: 30, starts: -1, number: 0)
        names = (hosts.map { |host| "DNS:#{host}" } + %w[IP:127.0.0.1 IP:::1]).join(",")
        issue([:server, hosts, ends, starts, number], "/CN=#{hosts.first}", ends, starts, "extendedKeyUsage" => "serverAuth",
"subjectAltName" => names)
      end

      # Certificate for a client. +subject+: an OpenSSL::X509::Name, or an argument of its method parse.
      def client(subject = "/O=Works, Inc./CN=client", ends: 30, serial: nil)
        issue([:client, subject, ends, serial], subject, ends, -1, serial: serial, "extendedKeyUsage" => "clientAuth")
      end

      # Returns a revocation list in PEM.
      def revoke(*pairs, ends: 30)
        list = OpenSSL::X509::CRL.new
        list.issuer = @certificate.subject
        list.version = 1
        list.last_update = Time.now - (2 * DAY)
        list.next_update = Time.now + (ends * DAY)
        pairs.each { |pair| list.add_revoked(revoked(pair)) }
        list.add_extension(OpenSSL::X509::Extension.new("crlNumber", OpenSSL::ASN1::Integer(1)))
        factory = OpenSSL::X509::ExtensionFactory.new
        factory.issuer_certificate = @certificate
        list.add_extension(factory.create_extension("authorityKeyIdentifier", "keyid:always"))
        list.sign(@key, "SHA256").to_pem
      end

      # Returns a revocation list in PEM with +count+ entries: so many that building it from OpenSSL's objects would take
      # minutes.
      def revoke_range(count)
        tbs, algorithm, = OpenSSL::ASN1.decode(OpenSSL::X509::CRL.new(revoke).to_der).value
        time = OpenSSL::ASN1::UTCTime.new(Time.now - DAY).to_der
        entries = Array.new(count) { |index| der("\x30", "\x02\x10\x11#{"\x22" * 7}".b + [index].pack("Q>") + time) }
        signed = der("\x30", tbs.value.map(&:to_der).insert(5, der("\x30", entries.join)).join)
        list = der("\x30", signed + algorithm.to_der + OpenSSL::ASN1::BitString.new(@key.sign("SHA256", signed)).to_der)
        OpenSSL::X509::CRL.new(list).to_pem
      end

      private

      def der(tag, content)
        size = content.bytesize
        length = size < 128 ? [size].pack("C") : [size].pack("N").sub(/\A\0+/n, "").then { |bytes| [0x80 | bytes.bytesize].pack("C") + bytes }
        tag.b + length + content
      end

      def revoked(pair)
        OpenSSL::X509::Revoked.new.tap do |revoked|
          revoked.serial = pair.certificate.serial
          revoked.time = Time.now - DAY
        end
      end

      def issue(kept_as, subject, ends, starts, serial: nil, **extensions)
        @issued[kept_as] ||= begin
          key = OpenSSL::PKey::EC.generate("prime256v1")
          Pair.new(build(subject, key, @certificate, ends: ends, starts: starts, serial: serial, **extensions), key)
        end
      end

      def build(subject, key, issuer, ends: 30, starts: -1, serial: nil, **extensions)
        certificate = OpenSSL::X509::Certificate.new
        certificate.version = 2
        certificate.serial = serial || (@serial += 1)
        certificate.subject = subject.is_a?(String) ? OpenSSL::X509::Name.parse(subject) : subject
        certificate.issuer = issuer&.subject || certificate.subject
        certificate.public_key = key
        certificate.not_before = Time.now + (starts * DAY)
        certificate.not_after = Time.now + (ends * DAY)
        extend_with(certificate, issuer || certificate, extensions)
        certificate.sign(@key, "SHA256")
      end

      def extend_with(certificate, issuer, extensions)
        factory = OpenSSL::X509::ExtensionFactory.new
        factory.subject_certificate = certificate
        factory.issuer_certificate = issuer
        extensions = { "subjectKeyIdentifier" => "hash", **extensions.transform_keys(&:to_s) }
        extensions.each do |name, value|
          certificate.add_extension(factory.create_extension(name, value.delete_prefix("critical,"), value.start_with?("critical,")))
        end
      end
    end

    # For test cases that talk to servers over TLS.
    module Secured
      # Files of a server with the certificate of +pair+, including the certificates of the clients' authorities.
      def certificate_files(pair = Authority.usual.server("localhost"), **more)
        { "cert.pem" => pair.pem, "key.pem" => pair.key_pem, **more.transform_keys(&:to_s) }
      end

      # The address that uses these files. +more+: further parameters.
      def ssl_address(**more)
        query = { cert: "cert.pem", key: "key.pem", **more }.map { |name, value| "#{name}=#{value}" }.join("&")
        "ssl://127.0.0.1:0?#{query}"
      end

      # Starts a server with TLS.
      def serve_tls(app, *arguments, files: {}, query: {}, pair: Authority.usual.server("localhost"), **options)
        launch_tls(app, *arguments, files: files, query: query, pair: pair, **options, &:start)
      end

      # As above, but does not wait.
      def launch_tls(app, *arguments, files: {}, query: {}, pair: Authority.usual.server("localhost"), **options, &block)
        files = { **certificate_files(pair), "ca.pem" => Authority.usual.pem, **files }
        launch(app, *arguments, files: files, bind: ssl_address(**query), **options) do |server|
          File.chmod(0o600, server.path("key.pem"))
          block ? block.call(server) : server.launch
        end
      end

      # Returns an OpenSSL::SSL::SSLSocket after its handshake. +host+: server name to ask for, or nil. +pair+: the client's
      # certificate. +version+: "1.2" or "1.3". +session+: the session to resume.
      def tls_socket(port, host: "localhost", pair: nil, version: nil, session: nil, on_session: nil)
        context = OpenSSL::SSL::SSLContext.new
        context.cert_store = OpenSSL::X509::Store.new.tap { |store| store.add_cert(Authority.usual.certificate) }
        context.verify_mode = OpenSSL::SSL::VERIFY_PEER
        context.min_version = context.max_version = OpenSSL::SSL.const_get("TLS1_#{version[-1]}_VERSION") if version
        context.add_certificate(pair.certificate, pair.key) if pair
        if on_session
          # A session in a context's cache ends when the context is garbage-collected.
          context.session_cache_mode = OpenSSL::SSL::SSLContext::SESSION_CACHE_CLIENT | OpenSSL::SSL::SSLContext::SESSION_CACHE_NO_INTERNAL_STORE
          context.session_new_cb = ->((_socket, new)) { on_session.call(new) }
        end
        connect_tls(context, port, host, session)
      end

      # Returns a plain socket that relays through a TLS connection, for clients that wait for sockets. Arguments as for
      # tls_socket.
      def relayed_tls_socket(port, **options)
        secured = tls_socket(port, **options)
        ours, theirs = UNIXSocket.pair
        [[theirs, secured], [secured, theirs]].each { |from, to| Thread.new { relay(from, to) } }
        ours
      end

      # Returns the body of the response to a GET on a new connection. Further arguments as for tls_socket.
      def tls_get(port, path = "/", fields: {}, **options)
        socket = tls_socket(port, **options)
        head = { "host" => "localhost", "connection" => "close", **fields }.map { |name, value| "#{name}: #{value}\r\n" }.join
        socket.write("GET #{path} HTTP/1.1\r\n#{head}\r\n")
        socket.read.split("\r\n\r\n", 2).last.to_s
      ensure
        socket&.close
      end

      private

      # Copies bytes until one of the sockets ends, then closes both.
      def relay(from, to)
        loop { to.write(from.readpartial(1 << 16)) }
      rescue IOError, SystemCallError, OpenSSL::SSL::SSLError
        [from, to].each { |socket| socket.close unless socket.closed? }
      end

      def connect_tls(context, port, host, session)
        tcp = TCPSocket.new("127.0.0.1", port)
        socket = OpenSSL::SSL::SSLSocket.new(tcp, context)
        socket.sync_close = true
        socket.hostname = host if host
        socket.session = session if session
        connected = socket.connect
      ensure
        tcp&.close unless connected
      end
    end
  end
end
