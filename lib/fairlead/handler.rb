# frozen_string_literal: true

module Fairlead
  # What `rackup -s fairlead` and `rails server -u fairlead` call. Rack 2 finds it as Rack::Handler::Fairlead, Rack 3 as
  # Rackup::Handler::Fairlead; both are this.
  module Handler
    # Their names of our options. Host and Port are more than another name.
    NAMES = { Threads: :threads, Verbose: :log_requests, Silent: :quiet }.freeze

    # Theirs that bear the name of one of ours and mean something else: config is the rackup file, loaded already.
    FOREIGN = %i[config].freeze

    # Serves +app+ until the server is asked to end; yields what has a #stop. On the main thread that is all of
    # `fairlead`, configuration file and workers included; on another one, a Fairlead::Server.
    def run(app, **options)
      @server = Thread.current == Thread.main ? launcher(app, options) : Server.new(app, **translate(options))
      yield @server if block_given?
      @server.run
    end

    # Ends the server; also from a trap.
    def shutdown
      Thread.new { @server&.stop }
    end

    # What `rackup --help` shows.
    def valid_options
      {
        "Host=HOST" => "host to listen on, or the path of a Unix socket",
        "Port=PORT" => "port to listen on (default: #{Binding::DEFAULT_PORT})",
        "Threads=MIN:MAX" => "number of threads (default: #{%i[min_threads max_threads].map { |name| Options[name].shown_default }.join(":")})",
        "Verbose" => "log each request",
        "Silent" => "print warnings and errors only"
      }
    end

    private

    # What the user asked for wins over the configuration file; what the caller has filled in comes last.
    def launcher(app, options)
      given, filled_in = split(options).map { |part| Configuration::Layer.from(translate(part), origin: "the caller") }
      Launcher.new(Configuration.load(given, fallback: filled_in), app: app)
    end

    # Only Rails says what was given. Host and Port are one address, and stay together.
    def split(options)
      given = options[:user_supplied_options] || options.keys
      given |= %i[Host Port] if given.intersect?(%i[Host Port])
      options.partition { |name, _| given.include?(name) }.map(&:to_h)
    end

    # Their options => ours, without those that are for themselves (:pid, :daemonize, :AccessLog and the like).
    def translate(options)
      ours = options.transform_keys { |name| NAMES.fetch(name, name) }
      ours = ours.select { |name, value| !value.nil? && Options[name] && !FOREIGN.include?(name) }
      options[:Host] || options[:Port] ? ours.merge(bind: address(options[:Host], options[:Port])) : ours
    end

    def address(host, port)
      case host
      when nil, "" then Binding.uri_for_port(port)
      when %r{\A[./@]} then "unix://#{host}"
      else Binding.uri_for_port(port || Binding::DEFAULT_PORT, host)
      end
    end
  end
end
