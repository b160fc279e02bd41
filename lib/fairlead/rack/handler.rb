# frozen_string_literal: true

module Fairlead
  # The handler for `rackup -s fairlead` and `rails server -u fairlead`. Rack 2 finds it as Rack::Handler::Fairlead, Rack 3 as
  # Rackup::Handler::Fairlead.
  module Handler
    # Their names for our options. Host and Port together are an address; see #translate.
    NAMES = { Threads: :threads, Verbose: :log_requests, Silent: :quiet, restart_cmd: :restart_command }.freeze

    # The scheme and the host of an address without a port.
    PORTLESS = %r{\A([a-z]+://(?:\[[^\]]*\]|[^\[/:?]+))(?=\z|[/?])}

    # Their options that have the name of an option of ours but another meaning: config is the rackup file, which is loaded
    # already.
    FOREIGN = %i[config].freeze

    # Serves an application until the server is asked to end. On the main thread it works like `fairlead`, with configuration
    # file and workers; on another thread it is a {Fairlead::Server}.
    #
    # @param app [#call] a Rack application
    # @param options [Hash{Symbol => Object}] options of rackup and Rails (Host, Port, Threads, …) and of docs/guides/configuration.md
    # @yieldparam server [#stop]
    # @return [void]
    # @raise [ConfigurationError, BindError]
    def run(app, **options)
      RestartCommand.note.foreign(pid_file: options[:pid], command: options[:restart_cmd], daemon: options[:daemonize])
      @server = Thread.current == Thread.main ? launcher(app, options) : Server.new(app, **translate(options))
      yield @server if block_given?
      @server.run
    rescue Error => e
      Spawner.inherited_link
      Spawner.report_failure(e) # for the supervisor that has started this program to load new code
      raise
    end

    # Ends the server. May be called in a trap.
    #
    # @return [Thread]
    def shutdown
      Thread.new { @server&.stop }
    end

    # @return [Hash{String => String}] options for `rackup --help`
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

    # Options of the user win over the configuration file; the caller's defaults come last. The caller's host (in Rails,
    # localhost in development) is also the host for a port without a host in the file.
    def launcher(app, options)
      parts = split(options)
      given, filled_in = parts.map { |part| Configuration::Layer.from(translate(part), origin: "the caller") }
      Launcher.new(Configuration.load(given, fallback: filled_in, default_host: default_host(parts.last)), app: app)
    end

    # nil if it means every interface, since a port means that anyway.
    def default_host(filled_in)
      host = filled_in[:Host].to_s
      host unless host.empty? || unix?(host) || address?(host) || %w[0.0.0.0 ::].include?(host)
    end

    def unix?(host) = host.start_with?("/", ".", "@")

    # As in `rails server -b 'ssl://0.0.0.0?key=…'`.
    def address?(host) = host.include?("://")

    # Separates the options of the user from the caller's defaults. Only Rails tells them apart; with rackup all options count
    # as given. Host and Port are one address and stay together.
    def split(options)
      given = options[:user_supplied_options] || options.keys
      given |= %i[Host Port] if given.intersect?(%i[Host Port])
      options.partition { |name, _| given.include?(name) }.map(&:to_h)
    end

    # Turns their options into ours, and drops options of their own (:pid, :daemonize, :AccessLog and the like).
    def translate(options)
      ours = options.transform_keys { |name| NAMES.fetch(name, name) }
      ours = ours.select { |name, value| !value.nil? && Options[name] && !FOREIGN.include?(name) }
      options[:Host] || options[:Port] ? ours.merge(bind: address(options[:Host], options[:Port])) : ours
    end

    def address(host, port)
      return Binding.address_for_port(port) if host.to_s.empty?
      return host.sub(PORTLESS) { "#{Regexp.last_match(1)}:#{port || Binding::DEFAULT_PORT}" } if address?(host)

      unix?(host) ? "unix://#{host}" : Binding.address_for_port(port || Binding::DEFAULT_PORT, host)
    end
  end
end
