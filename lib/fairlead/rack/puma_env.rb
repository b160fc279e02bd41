# frozen_string_literal: true

module Fairlead
  # Rack middleware that completes the engine's additions to the env for the option puma_env, in the form of newer versions of
  # Puma: the waiting time for the body is a Float, `puma.mark_as_io_bound` is callable (it does nothing here, as each request
  # keeps its thread), and a client's certificate is an object.
  class PumaEnv
    BODY_WAIT = "puma.request_body_wait"
    MARK_AS_IO_BOUND = "puma.mark_as_io_bound"
    PEER_CERTIFICATE = "puma.peercert"
    CERTIFICATE = "SSL_CLIENT_CERT"
    NOTHING = -> {}

    def initialize(app)
      @app = app
    end

    def call(env)
      env[BODY_WAIT] = env[BODY_WAIT].to_f
      env[MARK_AS_IO_BOUND] = NOTHING
      pem = env[CERTIFICATE]
      env[PEER_CERTIFICATE] = peer_certificate(pem) if pem && !pem.empty?
      @app.call(env)
    end

    private

    # Requests on a connection have the same text, so it is read once for consecutive requests.
    def peer_certificate(pem)
      text, certificate = @last
      return certificate if text.equal?(pem)

      require "openssl"
      OpenSSL::X509::Certificate.new(pem).tap { |read| @last = [pem, read].freeze }
    end
  end
end
