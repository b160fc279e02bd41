# frozen_string_literal: true

require "uri"

# Starts a server from a plain Ruby program. Iodine.start works like `fairlead` without a rackup file: with configuration file,
# environment, signals and workers. Settings of the program win.
module Iodine
  # The settings of one Iodine.listen, as options of Fairlead.
  class ListenOptions
    OPTIONS = { timeout: :keep_alive_timeout, ping: :ping_interval, max_clients: :max_connections, log: :log_requests,
                public: :public_dir }.freeze
    SIZES = { max_body: [:body_max_bytes, 1 << 20], max_headers: [:head_max_bytes, 1 << 10], max_msg: [:message_max_bytes, 1 << 10] }.freeze
    KNOWN = [:service, :url, :handler, :app, :port, :address, :tls, *OPTIONS.keys, *SIZES.keys].freeze

    # The services over HTTP: true if they have TLS even without tls:.
    SERVICES = { "http" => false, "ws" => false, "unix" => false, "https" => true, "wss" => true }.freeze

    # Services that are not HTTP, with TLS and without.
    RAW = %w[raw tcp tls].freeze

    attr_reader :app

    def initialize(settings, app)
      unknown = settings.keys - KNOWN
      raise ArgumentError, "Iodine.listen does not know #{unknown.join(", ")}" if unknown.any?

      @settings = DEFAULT_SETTINGS.slice(*KNOWN).merge(settings)
      @url = URI(@settings[:url]) if @settings[:url]
      @tls = tls_for((@settings[:service] || @url&.scheme || :http).to_s)
      @app = app || settings[:handler] || settings[:app]
    end

    def folder = @settings[:public]

    # The address for `bind`.
    def bind
      address, port = @url ? [url_address, @url.port] : @settings.values_at(:address, :port)
      return unix(address) if address.to_s.match?(%r{\A\.?/})

      port ||= DEFAULT_SETTINGS[:port]
      @tls ? @tls.address_for(address, port) : Fairlead::Binding.address_for_port(port, address)
    end

    # The options without the address: name => value.
    def options
      plain = OPTIONS.to_h { |theirs, ours| [ours, @settings[theirs]] }
      sizes = SIZES.to_h { |theirs, (ours, unit)| [ours, @settings[theirs]&.*(unit)] }
      plain.merge(sizes).compact
    end

    private

    # The host of unix:///path is nil or "", depending on the release of uri.
    def url_address = @url.host.to_s.empty? ? @url.path : @url.host

    def unix(path)
      Fairlead::Compat.missing("TLS on a Unix socket", "listen on a port, or serve the socket without TLS") if @tls

      "unix://#{path}"
    end

    # A TLS; nil without.
    def tls_for(service)
      Fairlead::Compat.missing("service: #{service}", "it speaks HTTP; use TCPServer for a protocol of your own") if RAW.include?(service)
      secured = SERVICES.fetch(service) { raise ArgumentError, "Iodine.listen does not know the service #{service}" }

      given = @settings[:tls] || (secured ? TLS.new : nil)
      raise TypeError, "tls: of Iodine.listen must be an Iodine::TLS, not #{given.inspect}" unless given.nil? || given.is_a?(TLS)

      given
    end
  end

  @services = []

  class << self
    # Adds an address and the application for it: `listen(service: :http, handler: app, port: 3000)`. The application may be a
    # block.
    def listen(settings = {}, &app)
      Fairlead::Compat.missing("Iodine.listen in a rackup file", "use the option bind, once for each address") if launcher

      @services << ListenOptions.new(settings, app)
      true
    end

    def listen2http(settings = {}, &app) = listen(settings.merge(service: :http), &app)

    # Serves the addresses of Iodine.listen until the server is asked to end.
    def start
      raise Fairlead::Error, "Iodine.start: the server is already running" if launcher

      services = @services.empty? ? [Rack.service].compact : @services
      raise Fairlead::Error, "Iodine.start: nothing to serve; call Iodine.listen(service: :http, handler: app) first" if services.empty?

      Fairlead::Launcher.new(configuration(services), app: app(services)).run
      self
    end

    # Ends the server after it has finished requests that have arrived. In a worker, ends only that worker, which is replaced.
    def stop
      raise Fairlead::Error, "Iodine.stop: no server is running that Iodine.start or `fairlead` has started" unless launcher

      master? ? launcher.stop : Process.kill(:TERM, Process.pid)
      self
    end

    private

    # All addresses have the same application.
    def app(services)
      apps = services.map { |service| [service.app, service.folder] }.uniq
      raise Fairlead::Error, "Iodine.listen needs a handler: or public:" if apps.flatten.compact.empty?

      if apps.size > 1
        Fairlead::Compat.missing("more than one application", "start a Fairlead::Server for each, or route by host or path in one")
      end
      services.first.app || Fairlead::AppLoader::NOTHING
    end

    def configuration(services)
      options = services.map(&:options).reduce(:merge).merge(process_options, bind: services.map(&:bind))
      Fairlead::Configuration.load(Fairlead::Configuration::Layer.from(options, origin: "Iodine.start"))
    end
  end
end
