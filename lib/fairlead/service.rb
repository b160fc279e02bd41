# frozen_string_literal: true

module Fairlead
  # What there is to serve, and where: the configuration, the open listeners, the logs and the application. Opened once
  # by the first process; workers inherit it.
  class Service
    attr_reader :configuration, :log, :listeners

    # +app+: an application that has been loaded already; otherwise the rackup file is loaded by #app.
    def initialize(configuration, log:, app: nil)
      @configuration = configuration
      @log = log
      @given = app
    end

    # Opens the listeners and the access log, and says where it listens.
    def open
      @access_log = AccessLog.new(configuration.access_log_path, origin: access_log_origin)
      @listeners = Listeners.open(configuration.bind, backlog: configuration.backlog)
      @listeners.each { |listener| log.listening(listener) }
      self
    end

    # The application, behind the middleware of AppLoader.use; loads it when that has not happened yet.
    def app
      @app ||= AppLoader.wrap(@given || AppLoader.of(configuration))
    end

    # Whether the application is to be there before the workers are forked.
    def preload? = !@given.nil? || configuration.preload?

    # What the engine has to know: the options that reach it, and what only this process can give it.
    def engine_settings
      details = configuration.development?
      configuration.engine_settings.merge(
        error_reporter: ErrorReporter.new(log, details: details).method(:call),
        error_details: details,
        access_log_fd: @access_log.fileno,
        error_log_fd: log.errors.fileno || 2,
        server_software: "fairlead #{VERSION}",
        field_lists: AppLoader.field_lists?
      )
    end

    # Reopens the access log; false if it is not a file.
    def reopen_logs
      return false unless @access_log.file?

      @access_log.reopen
      log.access_log_reopened
      true
    end

    # Gives everything back, also what only a part of #open has opened.
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
