# frozen_string_literal: true

require "fairlead/compat/agoo/routes"
require "fairlead/compat/public_folder"

module Agoo
  # Starts a server from a plain program, as agoo does:
  #
  #   Agoo::Server.init(6464, "root", thread_count: 0)
  #   Agoo::Server.handle(:GET, "/hello", handler)
  #   Agoo::Server.start
  #
  # With a thread_count (the default is 1) it is a Fairlead::Server, and #start returns. With 0 it works like `fairlead`, with
  # signals, a configuration file and workers, and #start returns when the server has ended.
  module Server
    OPTIONS = { connection_timeout: :keep_alive_timeout }.freeze

    # Options of agoo that Fairlead does not need (ignored), and options that it does not have (refused).
    IGNORED = %i[pedantic poll_timeout hide_schema].freeze
    MISSING = {
      graphql: "use the gem graphql",
      max_push_pending: "client_pending_bytes limits the unsent bytes of a client"
    }.freeze
    KNOWN = [:thread_count, :worker_count, :bind, :root_first, :ssl_cert, :ssl_key, *OPTIONS.keys, *IGNORED].freeze

    # An address of `bind:`. The scheme may be missing, and so may the port behind https.
    ADDRESS = %r{\A(?:(?:http|tcp)://|(?<tls>(?:https|ssl)://))?(?<host>\[[^\]]*\]|[^:/]*)(?::(?<port>\d+))?\z}
    HTTPS_PORT = 443

    class << self
      # +root+: a folder with files, or nil.
      def init(port, root = nil, options = {})
        options.each_key { |name| check(name) }
        @settings = options
        @bind = addresses(port)
        @routes = Routes.new
        @middleware = []
        @root = root unless root.to_s.empty?
        @own_types = false
        nil
      end

      # Calls +handler+ (an object with #call, its class, or the name of the class) for matching requests. +method+: :GET and so
      # on, nil for any. In +path+, `*` matches one segment and `**` any number of them.
      def handle(method, path, handler)
        initialized(@routes).add(method, path, handler)
        nil
      end

      # Calls +handler+ for requests that match neither a path nor a file.
      def handle_not_found(handler)
        initialized(@routes).not_found = handler
        nil
      end

      # Puts a middleware in front of the handlers.
      def use(middleware, *arguments)
        initialized(@middleware) << [middleware, arguments]
        nil
      end

      def rack_early_hints(on)
        @early_hints = on
      end

      def start
        options = fairlead_options
        return serve(options) if @settings[:thread_count] == 0 # rubocop:disable Style/NumericPredicate -- it may be nil

        if options.key?(:workers)
          Fairlead::Compat.missing("worker_count: with a thread_count:", "set thread_count: 0; Agoo::Server.start then does not return")
        end
        @server = Fairlead::Server.new(app, log: Fairlead::EventLog.new, **options).start
        nil
      end

      # Ends the server, even if `fairlead` has started it.
      def shutdown
        @server ? @server.stop : Fairlead::Launcher.current&.stop
        @server = nil
      end

      def path_group(*) = Fairlead::Compat.missing("Agoo::Server.path_group", "use Rack::Static in a rackup file")
      def header_rule(*) = Fairlead::Compat.missing("Agoo::Server.header_rule", "use Rack::Static and its header_rules")
      def domain(*) = Fairlead::Compat.missing("Agoo::Server.domain", "route by HTTP_HOST in the application")

      # The engine has its own list of types, so files are then served with Rack's types.
      def add_mime(suffix, type)
        @own_types = true
        ::Rack::Mime::MIME_TYPES[".#{suffix}"] = type
        nil
      end

      private

      def check(name)
        Fairlead::Compat.missing("#{name}: of Agoo::Server.init", MISSING[name]) if MISSING.key?(name)
        raise ArgumentError, "Agoo::Server.init does not know #{name}" unless KNOWN.include?(name)
      end

      def initialized(part)
        part or raise Fairlead::Error, "call Agoo::Server.init(port, root) first"
      end

      # Agoo has TLS only if `bind:` says so, even if there is a certificate.
      def addresses(port)
        tls = @settings.values_at(:ssl_cert, :ssl_key)
        raise ArgumentError, "Agoo::Server.init needs both ssl_cert: and ssl_key:" if tls.one?(&:nil?)

        @settings[:bind] ? Array(@settings[:bind]).map { |url| bind(url) } : [Fairlead::Binding.address_for_port(port)]
      end

      # Turns "http://127.0.0.1:6464", "https://127.0.0.1:6465", "unix:///tmp/app.socket" or ":6464" into an address for `bind`.
      def bind(url)
        return url if url.start_with?("unix:")

        match = ADDRESS.match(url)
        port = match && (match[:port] || (HTTPS_PORT if match[:tls]))
        raise ArgumentError, "Agoo::Server.init cannot bind to #{url}" unless port

        host = match[:host] unless match[:host].empty?
        match[:tls] ? Fairlead::Binding::Ssl.address_for(host, port, certificate(url)) : Fairlead::Binding.address_for_port(port, host)
      end

      def certificate(url)
        cert, key = @settings.values_at(:ssl_cert, :ssl_key)
        raise ArgumentError, "Agoo::Server.init needs ssl_cert: and ssl_key: for #{url}" unless cert

        { cert: cert, key: key }
      end

      def fairlead_options
        options = OPTIONS.to_h { |theirs, ours| [ours, initialized(@settings)[theirs]] }.compact
        options[:max_threads] = @settings[:thread_count] if @settings[:thread_count].to_i.positive?
        options[:workers] = @settings[:worker_count] if @settings[:worker_count].to_i > 1
        options[:early_hints] = true if @early_hints
        options[:log_requests] = true if Log.state(:request)
        options[:public_dir] = @root if native_files?
        options.merge(bind: @bind)
      end

      # True if the engine can serve the files; it does so before it calls the handlers.
      def native_files? = @root && @settings[:root_first] && !@own_types

      # The handlers come before the files, unless root_first is set.
      def app
        folder = Fairlead::Compat::PublicFolder.new(@routes, @root) if @root && !native_files?
        @routes.files = folder
        first = @settings[:root_first] && folder ? folder : @routes
        @middleware.reverse.reduce(first) { |inner, (middleware, arguments)| middleware.new(inner, *arguments) }
      end

      def serve(options)
        layer = Fairlead::Configuration::Layer.from(options, origin: "Agoo::Server.init")
        Fairlead::Launcher.new(Fairlead::Configuration.load(layer), app: app).run
        nil
      end
    end
  end
end
