# frozen_string_literal: true

require "openssl"

module Bench
  # The TLS that a scenario asks for: the kind of the certificate (Certificates::KINDS), and whether connections that replace others
  # resume their sessions. Version and cipher are the same for all servers: the load tool offers one version, and a measurement
  # in which something else was agreed on does not count.
  Tls = Struct.new(:certificate, :resume, keyword_init: true) do
    # The client's side of TLS over a socket, whatever the certificate.
    def self.over(socket)
      context = OpenSSL::SSL::SSLContext.new
      context.verify_mode = OpenSSL::SSL::VERIFY_NONE
      OpenSSL::SSL::SSLSocket.new(socket, context).tap(&:connect)
    end

    # For the load tool. It does not check the certificate, so that its own work is as little as it can be.
    def arguments
      ["--insecure", "--tls-version", self.class::VERSION, resume ? "--resume" : "--no-resume"]
    end

    # The certificate with its key, as files.
    def pair
      Certificates.pair(certificate)
    end

    # Why what both sides have agreed on is not what was asked for, or nil; `found` is what the load tool says of TLS.
    def problem(found)
      others = found["agreed"].map { |one| one.values_at("version", "cipher") } - [["TLSv#{self.class::VERSION}", self.class::CIPHER]]
      "agreed on #{others.map { |other| other.join(" ") }.join(", ")}" unless others.empty?
    end
  end

  Tls::VERSION = "1.3"
  # What rustls and OpenSSL prefer when nobody tells them otherwise.
  Tls::CIPHER = "TLS_AES_256_GCM_SHA384"
end
