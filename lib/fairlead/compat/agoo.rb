# frozen_string_literal: true

require "fairlead"
require_relative "names"
require_relative "public_folder"

Fairlead::Compat.claim(:Agoo, "agoo")

# The push API of agoo 2 on Fairlead, for applications that name Agoo:
#
#   require "fairlead/compat/agoo"   # instead of the gem
#
# Handlers are the same in both. Agoo::Client adds the differences of agoo's clients, to all clients of the process.
# Agoo::Server starts a server from a plain program. Parts that Fairlead does not have, such as GraphQL, raise
# NotImplementedError with an alternative.
module Agoo
  VERSION = "2.15 (Fairlead #{Fairlead::VERSION})".freeze

  class << self
    # Publishes a message to the subscribers of the subject, and of patterns like "news.*.sport" or "news.>" that match it, in
    # every process. Returns nil.
    def publish(subject, message)
      Fairlead.publish(subject, Agoo::Client.text(message))
      nil
    end

    def unsubscribe(_subject)
      Fairlead::Compat.missing("Agoo.unsubscribe", "let each client unsubscribe itself")
    end

    # Ends the server that Agoo::Server.start has started.
    def shutdown = Server.shutdown

    def const_missing(name)
      return super unless name == :GraphQL

      Fairlead::Compat.missing("Agoo::GraphQL", "use the gem graphql")
    end
  end

  # The differences between agoo's clients and Fairlead's: a subject is always a pattern, a client can end all its subscriptions
  # at once, events of a stream are named "msg", and the handler's on_error is called if a write fails. Arguments that agoo does
  # not have (a block, `match:`) mean the same as without this file.
  module Client
    EVENT = "msg"

    # The text of a message.
    def self.text(message)
      message.is_a?(String) ? message : message.to_s
    end

    # With a subject alone, as in agoo, messages go straight to the client.
    def subscribe(subject = nil, *options, **keywords, &block)
      return super unless options.empty? && keywords.empty? && block.nil?

      made = super(subject, match: :subject, handler: (method(:write_event) if protocol == :sse))
      subjects << subject.to_s if made && !subjects.include?(subject.to_s)
      made
    end

    # Ends the subscription to that subject, or to all of them.
    def unsubscribe(subject = nil, *options, **keywords)
      return super if keywords.any? || (subject && !subjects.include?(subject.to_s))

      ended = subject ? [subject.to_s] : subjects.dup
      ended.each { |one| super(one) }
      @subjects -= ended
      nil
    end

    def publish(subject = nil, message = nil, *engine, **keywords)
      super(subject, message && Client.text(message), *engine, **keywords)
    end

    def write(data, **event)
      event = { event: EVENT, **event } if protocol == :sse
      written = super(data, **event)
      report_error("too many pending messages") unless written || !open?
      written
    end

    private

    def subjects = (@subjects ||= [])

    def write_event(_subject, message) = write(message)

    def report_error(text)
      handler.on_error(self, text) if handler.respond_to?(:on_error)
    end
  end

  # The log of programs that use agoo: lines on standard error. The messages of the server itself are Fairlead's.
  module Log
    LEVELS = %i[error warn info debug].freeze

    @enabled = { error: true, warn: true, info: false, debug: false, request: false }

    class << self
      # Switches kinds of messages on and off: `configure(states: { INFO: true, request: true })`. Only :info, :error, :warn,
      # :debug and :request have an effect; :request is Fairlead's access log. Files and colours are not supported.
      def configure(options)
        unless options[:dir].to_s.empty?
          Fairlead::Compat.missing("Agoo::Log.configure(dir:)", "send standard error to a file; --access-log logs requests to one")
        end

        options.fetch(:states, {}).each { |name, on| set_state(name, on) }
        nil
      end

      def state(name) = @enabled.fetch(name.to_s.downcase.to_sym, false)

      def set_state(name, on)
        @enabled[name.to_s.downcase.to_sym] = on ? true : false
      end

      LEVELS.each do |level|
        define_method(level) { |text| write(level, text) if state(level) }
        define_method(:"#{level}?") { state(level) }
      end

      # Does nothing, since lines are not buffered.
      def flush(_seconds = nil) = true
      def shutdown = nil

      private

      def write(level, text)
        STDERR.write("#{level.to_s.upcase}: #{text}\n")
        nil
      end
    end
  end

  # The handlers of Agoo::Server.handle as a Rack application: calls the first matching handler; if there is none, serves the
  # file; if there is no file, calls the handler for missing pages.
  class Routes
    METHODS = %i[CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT].freeze

    Route = Struct.new(:verb, :pattern, :app) do
      def match?(env)
        (verb.nil? || verb == env["REQUEST_METHOD"]) && pattern.match?(env["PATH_INFO"])
      end
    end

    # A Compat::PublicFolder, or nil.
    attr_writer :files

    def initialize
      @routes = []
      @not_found = ->(_) { [404, { "content-type" => "text/plain" }, ["Not Found"]] }
    end

    def add(method, path, handler)
      raise ArgumentError, "invalid method #{method.inspect}" unless method.nil? || METHODS.include?(method)

      @routes << Route.new(method&.name, pattern(path), app(handler))
    end

    def not_found=(handler)
      @not_found = app(handler)
    end

    def call(env)
      route = @routes.find { |one| one.match?(env) }
      return route.app.call(env) if route

      @files&.file(env) || @not_found.call(env)
    end

    private

    def pattern(path)
      parts = path.split(/(\*\*|\*)/).map { |part| { "**" => ".*", "*" => "[^/]*" }.fetch(part) { Regexp.escape(part) } }
      /\A#{parts.join}\z/m
    end

    def app(handler)
      handler = Object.const_get(handler) if handler.is_a?(String)
      return handler if handler.respond_to?(:call)
      return handler.new if handler.is_a?(Class) && handler.method_defined?(:call)

      Fairlead::Compat.missing("a handler without #call", "give it a method call(env), as in Rack")
    end
  end

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

Fairlead::Client.prepend(Agoo::Client)
