# frozen_string_literal: true

module Fairlead
  # What is served, and where: the configuration, the open listeners, the logs and the application. The first process opens
  # it; workers inherit it.
  class Service
    attr_reader :configuration, :log, :listeners

    # +app+: the application, if it is loaded already; otherwise #app loads the rackup file.
    def initialize(configuration, log:, app: nil)
      @configuration = configuration
      @log = log
      @given = app
    end

    # Opens the listeners and the access log, and logs the addresses.
    def open
      @access_log = AccessLog.new(configuration.access_log_path, origin: access_log_origin)
      @listeners = Listeners.open(configuration.bind, backlog: configuration.backlog)
      @listeners.each { |listener| log.listening(listener) }
      self
    end

    # The application, behind the middleware of AppLoader.use. Loads it the first time.
    def app
      @app ||= AppLoader.wrap(@given || AppLoader.of(configuration))
    end

    # Whether the application is loaded before the workers are forked.
    def preload? = !@given.nil? || configuration.preload?

    # The settings of the engine: its options, and what only this process has.
    def engine_settings
      details = configuration.development?
      handler = configuration.lowlevel_error_handler
      configuration.engine_settings.merge(
        error_reporter: ErrorReporter.new(log, details: details, handler: handler).method(:call),
        error_details: details || !handler.nil?,
        access_log_fd: @access_log.fileno,
        error_log_fd: log.errors.fileno || 2,
        server_software: "fairlead #{VERSION}",
        field_lists: AppLoader.field_lists?,
        http_version: AppLoader.http_version?,
        puma_env: configuration.puma_env?,
        fiber_per_request: configuration.fiber_per_request?,
        out_of_band: (-> { configuration.hooks.run(:out_of_band, log: log) } if configuration.hooks.any?(:out_of_band))
      )
    end

    # Reopens the access log. Returns false if it is not a file.
    def reopen_logs
      return false unless @access_log.file?

      @access_log.reopen
      log.access_log_reopened
      true
    end

    # Closes everything, even if #open has failed halfway.
    def close
      @listeners&.remove
      @access_log&.close
    end

    private

    def access_log_origin
      configuration.origin(configuration.access_log ? :access_log : :log_requests)
    end
  end
end
