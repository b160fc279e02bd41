# frozen_string_literal: true

require "openssl"

module Bench
  # The TLS of a scenario: the kind of the certificate (Certificates::KINDS), and whether new connections resume the
  # sessions of the ones they replace. Version and cipher are the same for all servers: the load tool offers one
  # version, and a measurement with another agreement does not count.
  Tls = Struct.new(:certificate, :resume, keyword_init: true) do
    # The client's side of TLS over a socket, whatever the certificate.
    def self.over(socket)
      context = OpenSSL::SSL::SSLContext.new
      context.verify_mode = OpenSSL::SSL::VERIFY_NONE
      OpenSSL::SSL::SSLSocket.new(socket, context).tap(&:connect)
    end

    # Arguments for the load tool. It does not check the certificate, so that it does as little work as possible.
    def arguments
      ["--insecure", "--tls-version", self.class::VERSION, resume ? "--resume" : "--no-resume"]
    end

    # Files of the certificate and its key.
    def pair
      Certificates.pair(certificate)
    end

    # Why the agreement of both sides is not the required one, or nil; `found` is the load tool's report on TLS.
    def problem(found)
      others = found["agreed"].map { |one| one.values_at("version", "cipher") } - [["TLSv#{self.class::VERSION}", self.class::CIPHER]]
      "agreed on #{others.map { |other| other.join(" ") }.join(", ")}" unless others.empty?
    end
  end

  Tls::VERSION = "1.3"
  # The default choice of rustls and OpenSSL.
  Tls::CIPHER = "TLS_AES_256_GCM_SHA384"
end
