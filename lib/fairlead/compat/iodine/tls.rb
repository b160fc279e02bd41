# frozen_string_literal: true

module Iodine
  # The argument of Iodine.listen(tls:): certificates, and issuers of client certificates. It only collects the parameters of an
  # `ssl://` address (docs/guides/tls.md), which reads the files; so a missing file is reported when the server starts.
  class TLS
    # True, because iodine could be built with TLS.
    SUPPORTED = true

    # The arguments of #use_certificate in their order; they are keywords as well.
    ARGUMENTS = %i[server_name certificate private_key password].freeze

    # The protocol of an `ssl://` address.
    PROTOCOL = "http/1.1"

    # Arguments as for #use_certificate; without any, and with only a name, it has a development certificate.
    def initialize(*arguments, **named)
      @pairs = []
      use_certificate(*arguments, **named) if arguments.any? || named.any?
    end

    # Adds a certificate and its key: paths of files in PEM. The certificate has its own hosts, so +server_name+ matters only
    # without a certificate: then a development certificate is used. Raises ArgumentError and TypeError for invalid
    # combinations.
    def use_certificate(*arguments, **named)
      name, certificate, key, password = certificate_arguments(arguments, named)
      if certificate.nil? != key.nil?
        raise ArgumentError, "Iodine::TLS: #{certificate ? "the private key of #{certificate}" : "the certificate of #{key}"} is missing"
      end

      @development ||= name unless certificate
      @pairs << [certificate, key] if certificate
      keep_password(password) if password
      self
    end

    # Asks clients for certificates of these authorities, a file in PEM, and refuses clients without one.
    def trust(path)
      raise TypeError, "Iodine::TLS#trust takes the path of a file" unless path.is_a?(String)

      Fairlead::Compat.missing("a second Iodine::TLS#trust", "put all certificates into one file") if @authorities && @authorities != path
      @authorities = path
      self
    end

    # Does nothing for http/1.1, which every client gets. The handler of the block would be a handler for TCP.
    def on_protocol(name, &)
      raise ArgumentError, "Iodine::TLS#on_protocol needs a block" unless block_given?
      return self if name == PROTOCOL

      Fairlead::Compat.missing("Iodine::TLS#on_protocol(#{name.inspect})", "it speaks #{PROTOCOL}; use OpenSSL::SSL::SSLServer for others")
    end

    # The address for `bind`. +host+: nil for every interface.
    def address_for(host, port)
      if @development && @pairs.any?
        Fairlead::Compat.missing("a self-signed certificate (#{@development}) beside others", "give each host a certificate and its key")
      end

      Fairlead::Binding::Ssl.address_for(host, port, parameters)
    end

    private

    def certificate_arguments(arguments, named)
      named = arguments.pop if arguments.first.is_a?(Hash)
      unknown = named.keys - ARGUMENTS
      raise ArgumentError, "Iodine::TLS does not know #{unknown.join(", ")}" if unknown.any?
      raise ArgumentError, "Iodine::TLS takes at most #{ARGUMENTS.size} arguments" if arguments.size > ARGUMENTS.size

      values = ARGUMENTS.zip(arguments).map { |name, value| value || named[name] }
      values.each { |value| raise TypeError, "Iodine::TLS takes Strings, not #{value.inspect}" unless value.nil? || value.is_a?(String) }
    end

    # Puts it into the Store, so that it is in no address.
    def keep_password(password)
      place = Fairlead::Tls::Store.add(password)
      Fairlead::Compat.missing("keys with different passwords", "encrypt them with the same one") if @password && @password != place

      @password = place
    end

    def parameters
      parameters = { cert: @pairs.map(&:first), key: @pairs.map(&:last), key_password_command: @password }
      parameters.update(ca: @authorities, verify_mode: "force_peer") if @authorities
      parameters.compact
    end
  end
end
