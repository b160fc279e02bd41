# frozen_string_literal: true

module Fairlead
  # The served application with its configuration, open listeners and logs. The first process opens it; workers inherit it.
  class Service
    attr_reader :configuration, :log, :listeners

    # The Tls::Offers of the `ssl://` addresses; nil before there are listeners.
    attr_reader :tls

    # +app+: the application, if it is loaded already; otherwise #app loads the rackup file. +redirection+: the Redirection of
    # the standard streams, if this process has one. +shares_certificates+: true if other processes of the server get the
    # certificates that this process reads.
    def initialize(configuration, log:, app: nil, redirection: nil, shares_certificates: false)
      @configuration = configuration
      @log = log
      @given = app
      @redirection = redirection
      @shares_certificates = shares_certificates
      @unused = []
    end

    # The LogFile of the access log; nil if the log is not a file.
    def access_log_file = @access_log&.file

    # Opens the listeners and the access log. +inherited+: as for Listeners.open.
    def open(inherited: Inherited.new)
      @access_log = AccessLog.new(configuration.access_log_path, origin: access_log_origin)
      @tls = Tls::Offers.new(configuration, log, keep: @shares_certificates)
      @listeners = open_listeners(inherited)
      @tls.tell_of_development
      @tls.warn
      tell_of_backlog
      self
    end

    # Logs the inherited listeners that no address uses.
    def tell_of_unused = @unused.each { |listener| log.listener_unused(listener) }

    # Logs the addresses that this process itself has opened.
    def announce_opened = listeners.reject(&:shared?).each { |listener| log.listening(listener) }

    # Logs the addresses, once there is an application to serve them.
    def announce = listeners.each { |listener| log.listening(listener) }

    # Opens the access log, and uses the listeners of another process of this server: +ios+, and +bindings+ in the same order.
    # +kept+: as for Tls::Offer. Raises DescriptorError if listeners are missing: the system does not say so when a process gets more
    # descriptors than it may have.
    def adopt(ios, bindings, kept: nil)
      @access_log = AccessLog.new(configuration.access_log_path, origin: access_log_origin)
      @tls = Tls::Offers.new(configuration, log, kept: kept, keep: @shares_certificates)
      adopt_listeners(ios, bindings)
      self
    end

    # The same, without opening the access log. The default for +bindings+ comes from the present listeners.
    def adopt_listeners(ios, bindings = @listeners.map(&:known_as))
      raise DescriptorError, Errno::EMFILE.new if ios.size < bindings.size

      @listeners = Listeners.new(ios.zip(bindings).map do |io, binding|
        io.autoclose = false
        listener = Listener.adopt(io.fileno, binding, shared: true)
        claim(listener, binding)
        secured(listener, binding)
      end)
    end

    # Reads the certificates again; see Tls::Offers#reload.
    def reload_certificates = @tls.reload

    # The application, behind the middleware of AppLoader.use. Loads it the first time.
    def app
      @app ||= load_app
    end

    # Loads the application and makes the requests of `warm_up`, unless this was done before the fork.
    def prepare
      return if @app

      app
      WarmUp.new(self).run
    end

    # True if the application does not come from a rackup file.
    def given? = !@given.nil?

    # True if the application is loaded before the workers are forked.
    def preload? = given? || configuration.preload?

    # The listeners for the engine.
    def engine_listeners
      proxy_protocol = configuration.remote_address[/\Aproxy_protocol:(.+)/, 1]
      listeners.to_engine(proxy_protocol: proxy_protocol)
    end

    # The EngineLines of an engine in this process.
    def engine_lines = EngineLines.new(log, @access_log)

    # The settings of the engine: its options, and values that only this process has.
    def engine_settings(lines = engine_lines)
      details = configuration.development?
      handler = configuration.lowlevel_error_handler
      configuration.engine_settings.merge(
        error_reporter: ErrorReporter.new(log, details: details, handler: handler).method(:call),
        error_details: details || !handler.nil?,
        access_log_fd: lines.request_fd,
        error_log_fd: lines.error_fd,
        server_software: "fairlead #{VERSION}",
        field_lists: AppLoader.field_lists?,
        alone: !configuration.supervised?,
        generation: 0, # of a process without workers
        puma_env: configuration.puma_env?,
        fiber_per_request: configuration.fiber_per_request?,
        set_request_timeout: Native.method(:set_request_timeout),
        acme_challenges: (Acme::Store.new(configuration.acme_dir).challenges if configuration.acme.any?),
        out_of_band: (-> { configuration.hooks.run(:out_of_band, log: log) } if configuration.hooks.any?(:out_of_band))
      )
    end

    # Reopens every log that is a file, and logs it. Returns false if none is a file.
    def reopen_logs
      files = { "the access log" => @access_log&.file }.merge(@redirection ? @redirection.files : {}).compact
      return false if files.empty?

      reopened = files.select { |_, file| reopen(file) }.keys
      log.logs_reopened(reopened) if reopened.any?
      true
    end

    # Closes everything, even if #open has failed halfway. +handed_over+: true if another part of the server has the listeners
    # now.
    def close(handed_over: false)
      handed_over ? @listeners.close : @listeners&.remove
      @access_log&.close
    end

    private

    def load_app
      app = dressed(@given || AppLoader.of(configuration))
      prepare_cable
      EagerLoad.run
      AppLoader.wrap(app)
    end

    # Only Rails defines that constant.
    def prepare_cable
      Cable::Sockets.prepare(configuration) if defined?(::ActionCable)
    end

    def reopen(file)
      file.reopen
      true
    rescue SystemCallError => e
      log.log_not_reopened(file.path, e)
      false
    end

    def dressed(app)
      app = ServerField.new(app, configuration.server_header) if configuration.server_header
      configuration.puma_env? ? PumaEnv.new(app) : app
    end

    def tell_of_backlog
      wanted = [configuration.backlog, *configuration.bind.map { |address| Binding.parse(address).backlog }].compact.max
      limit = Backlog.shortage(wanted)
      log.backlog_short(wanted, limit) if limit
    end

    def open_listeners(inherited)
      activated = configuration.bind_to_activated_sockets
      listeners = Listeners.open(configuration.bind, backlog: configuration.backlog, inherited: inherited, activated: activated) do |unused|
        @unused << unused
      end
      listeners.each { |listener| secured(listener, listener.ssl_address) }
      listeners
    end

    # Applies the configuration of its address to a listener. The configuration may have changed since the listener was opened.
    def claim(listener, address)
      return if address.to_s.empty?

      at = ->(one) { one.partition("?").first }
      configured = configuration.bind.find { |one| at[one] == at[address] }
      Binding.parse(configured || address).claim([listener])
    end

    # +address+: the address that the listener was opened for, or nil.
    def secured(listener, address)
      offer = @tls.for(address) unless address.to_s.empty?
      if offer
        listener.ssl_address = address
        listener.secure(offer)
      end
      listener
    end

    def access_log_origin
      configuration.origin(configuration.access_log ? :access_log : :log_requests)
    end
  end
end
