# frozen_string_literal: true

module Fairlead
  module Tls
    # The files for a listener and their contents, from the Parameters of its address and the options. Paths are relative to the
    # folder in which the server starts, and stay so.
    class Settings
      # Most MiB of a file, so that a wrong path, such as a device, cannot fill the memory; revocation lists have millions of
      # entries.
      MOST = 1
      MOST_OF_LISTS = 128

      # All relevant paths.
      attr_reader :files

      # Warnings for people about the files of the last reading.
      attr_reader :warnings

      # The DevelopmentCertificate, if neither the address nor the options name a certificate; or nil.
      attr_reader :development

      # +host+: of the address. +checking+: nothing will be served, so no development certificate is stored.
      def initialize(parameters, configuration, host, checking: false)
        @parameters = parameters
        @http2 = configuration.http2?
        @acme = Acme::Store.new(configuration.acme_dir) if configuration.acme.any?
        given = configuration.certificate.map { |chain, key, ocsp| Certificate.new(chain, key, ocsp) }
        @expected = []
        @certificates = (parameters.certificates + given).map { |one| Certificate.new(*one.to_a.map { |path| absolute(path) }) }
        find_certificates(configuration, host, checking) if @certificates.empty?
        @ca, @crl = [parameters.ca, parameters.crl].map { |path| absolute(path) }
        @ticket_keys = configuration.tls_ticket_keys.map { |path| absolute(path) }
        @files = [*@certificates.flat_map(&:to_a), @ca, @crl, *@ticket_keys].compact.reject { |path| Store.place?(path) }.uniq
        @warnings = []
      end

      # The settings for Native::Tls. Raises Invalid if a file cannot be read.
      def read
        certificates = read_certificates
        @warnings = [*@certificates.map(&:key), *@ticket_keys].uniq.filter_map { |path| open_to_all(path) } + @expected.filter_map(&:warning)
        {
          certificates: certificates,
          verify_mode: @parameters.verify_mode,
          ca: source(@ca),
          crl: source(@crl, MOST_OF_LISTS),
          tls13_only: @parameters.tls13_only?,
          http2: @http2,
          ticket_keys: @ticket_keys.map { |path| source(path) },
          acme_challenges: @acme&.challenges
        }
      end

      # Settings with which every handshake fails, until the files can be read.
      def without_certificates
        {
          certificates: [],
          verify_mode: "none",
          ca: nil,
          crl: nil,
          tls13_only: @parameters.tls13_only?,
          http2: @http2,
          ticket_keys: [],
          acme_challenges: @acme&.challenges || File::NULL # no challenges come; but only with a folder for them may the certificate be missing
        }
      end

      # A value that differs between two states of the files, found without reading them.
      def signature
        files.map do |path|
          stat = File.stat(path)
          [stat.dev, stat.ino, stat.mtime, stat.size]
        rescue SystemCallError => e
          e.class
        end
      end

      private

      # The certificates of `acme`, some of which may still be missing; or a development certificate.
      def find_certificates(configuration, host, checking)
        if @acme
          @expected = configuration.acme.map { |order| Acme::Shown.new(order, @acme) }
          @certificates = configuration.acme.map { |order| Certificate.new(*[@acme.path_of(order)] * 2) }
        elsif configuration.at_development?
          @development = DevelopmentCertificate.new(host) unless checking
          @certificates = [Certificate.new(*[@development&.prepare&.path || Store.add(DevelopmentCertificate.unkept(host))] * 2)]
        else
          raise Invalid, "there is no certificate; give cert and key, or the option certificate, or have one ordered with the option acme"
        end
      end

      # Certificates of `acme` may be missing; all others must be there.
      def read_certificates
        return @expected.filter_map(&:read).map { |one| [one, one, nil] } if @expected.any?

        @certificates.map { |one| [source(one.cert), key(one.key), source(one.ocsp)] }
      end

      def absolute(path)
        path && (Store.place?(path) ? path : SystemText.absolute(path))
      rescue ArgumentError
        raise Invalid, "#{path} #{SystemText::HOMELESS}"
      end

      # [name, bytes]; nil for nil.
      def source(path, most = MOST)
        return unless path

        [name_of(path), Store[path] || contents(path, most)]
      rescue SystemCallError => e
        raise Invalid, "#{path}: cannot be read (#{e.class.name.delete_prefix("Errno::")})"
      end

      # +most+: in MiB. Neither a named pipe without a writer nor an endless device may block the server.
      def contents(path, most)
        text = File.open(path, File::RDONLY | File::NONBLOCK | File::BINARY) do |file|
          type = file.stat.ftype
          raise Invalid, "#{path}: is no regular file (#{type})" unless %w[file directory].include?(type)

          file.read((most << 20) + 1) || ""
        end
        return text if text.bytesize <= most << 20

        raise Invalid, "#{path}: has more than #{most} MiB, which is too much for such a file; check its path"
      end

      def key(path)
        name, pem = source(path)
        [name, PrivateKey.readable(pem, name, @parameters.key_password_command)]
      end

      def name_of(path) = Store.place?(path) ? "the text at #{path}" : path

      def open_to_all(path)
        return if Store.place?(path)

        "everybody on this machine may read the key #{path}; chmod 600 keeps it private" if File.stat(path).world_readable?
      rescue SystemCallError
        nil # reading it says why
      end
    end
  end
end
