# frozen_string_literal: true

require "fileutils"
require "openssl"
require "tmpdir"

module Bench
  # Self-signed certificates for 127.0.0.1, made on first use and removed with this process.
  module Certificates
    # A certificate and its key: paths of files in PEM.
    Pair = Struct.new(:certificate, :key)

    KINDS = {
      "ECDSA P-256" => -> { OpenSSL::PKey::EC.generate("prime256v1") },
      "RSA 2048" => -> { OpenSSL::PKey::RSA.generate(2048) }
    }.freeze

    DAY = 86_400

    module_function

    # The Pair of a kind, the same for all servers.
    def pair(kind)
      @pairs ||= {}
      @pairs[kind] ||= write(kind, KINDS.fetch(kind).call)
    end

    # Pairs for so many hosts, ECDSA P-256, with one key for all.
    def of_hosts(count)
      @hosts ||= []
      @key ||= KINDS.fetch("ECDSA P-256").call
      @hosts << write("host #{@hosts.size}", @key, host: host(@hosts.size)) while @hosts.size < count
      @hosts.first(count)
    end

    def host(index) = "h#{index}.test"

    # +host+: nil for 127.0.0.1.
    def write(name, key, host: nil)
      path = File.join(directory, name.downcase.tr(" ", "-"))
      Pair.new("#{path}.pem", "#{path}.key").tap do |pair|
        File.write(pair.certificate, certificate(key, host || "127.0.0.1", host ? "DNS:#{host}" : "IP:127.0.0.1,DNS:localhost").to_pem)
        File.write(pair.key, key.to_pem, perm: 0o600)
      end
    end

    def directory
      @directory ||= Dir.mktmpdir("fairlead-bench-certificates-").tap do |path|
        owner = Process.pid
        at_exit { FileUtils.rm_rf(path) if Process.pid == owner }
      end
    end

    def certificate(key, name, names)
      OpenSSL::X509::Certificate.new.tap do |certificate|
        certificate.version = 2 # the code of version 3
        certificate.serial = 1
        certificate.subject = certificate.issuer = OpenSSL::X509::Name.new([["CN", name]])
        certificate.not_before = Time.now - DAY
        certificate.not_after = Time.now + DAY
        certificate.public_key = key.is_a?(OpenSSL::PKey::EC) ? key : key.public_key
        extensions = OpenSSL::X509::ExtensionFactory.new(certificate, certificate)
        certificate.add_extension(extensions.create_extension("basicConstraints", "CA:FALSE", true))
        certificate.add_extension(extensions.create_extension("subjectAltName", names))
        certificate.sign(key, "SHA256")
      end
    end
    private_class_method :write, :directory, :certificate
  end
end
