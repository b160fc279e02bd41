# frozen_string_literal: true

module Fairlead
  # Handles an exception that the application did not rescue: one entry in the log, and a response. The option
  # lowlevel_error_handler makes the response; without it, the response is plain, and shows the exception only in development.
  # In other environments the engine prefers the error page of `public_dir`, if there is one.
  class ErrorReporter
    TITLES = { 500 => "500 Internal Server Error", 503 => "503 Service Unavailable" }.freeze
    HINTS = { 500 => "The application failed. See the server log for details.", 503 => "The server is ending." }.freeze

    # +details+: true if the response shows the exception. +handler+: makes the response instead, or nil.
    def initialize(log, details:, handler: nil)
      @log = log
      @details = details
      @handler = handler
      @takes = handler && count_of_arguments
    end

    # Logs +exception+, and returns the response with +status+. +env+ is nil if the exception happened outside a request,
    # +status+ is nil if no response is wanted because one has begun.
    def call(exception, env, status = 500)
      @log.app_failed(exception, request(env))
      return unless status

      (@handler && handled(exception, env, status)) || plain(exception, env, status)
    end

    private

    # The response of the handler; nil if it has raised.
    def handled(exception, env, status)
      @handler.call(*[exception, env, status].first(@takes))
    rescue StandardError, ScriptError => e
      @log.app_failed(e, request(env))
      nil
    end

    # The number of arguments that the handler takes, at most three.
    def count_of_arguments
      parameters = (@handler.respond_to?(:parameters) ? @handler : @handler.method(:call)).parameters.map(&:first)
      parameters.include?(:rest) ? 3 : parameters.count { |kind| %i[req opt].include?(kind) }
    end

    def plain(exception, env, status)
      html = env && html?(env)
      body = html ? page(exception, status) : text(exception, status)
      type = html ? "text/html" : "text/plain"
      [status, { "content-type" => "#{type}; charset=utf-8", "content-length" => body.bytesize.to_s }, [body]]
    end

    # The method and the path, escaped so that it cannot start a new line. The query may contain secrets and is left out.
    def request(env)
      return unless env

      "#{env["REQUEST_METHOD"]} #{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}".b.gsub(/[^\x21-\x7e ]/n) { |byte| format("%%%02X", byte.ord) }
    end

    def html?(env)
      env["HTTP_ACCEPT"].to_s.include?("text/html")
    end

    def text(exception, status)
      "#{TITLES.fetch(status)}\n\n#{@details ? details(exception) : HINTS.fetch(status)}\n"
    end

    def page(exception, status)
      require "cgi/escape"
      title = TITLES.fetch(status)
      content = @details ? "<pre>#{CGI.escapeHTML(details(exception))}</pre>" : "<p>#{HINTS.fetch(status)}</p>"
      "<!DOCTYPE html>\n<html lang=\"en\"><head><title>#{title}</title></head>" \
        "<body><h1>#{title}</h1>#{content}</body></html>\n"
    end

    def details(exception)
      "#{exception.class}: #{exception.message}\n\n#{exception.backtrace&.join("\n")}".scrub
    end
  end
end
