# frozen_string_literal: true

module Fairlead
  # Handles an exception that the application did not rescue: one entry in the log, and a plain response that shows it
  # to the client only in development. In other environments the engine prefers the error page of `public_dir`, if there
  # is one.
  class ErrorReporter
    TITLE = "500 Internal Server Error"
    HINT = "The application failed. See the server log for details."

    # +details+: whether the response shows the exception.
    def initialize(log, details:)
      @log = log
      @details = details
    end

    # Logs +exception+ and returns the response. +env+ is nil when it happened outside a request.
    def call(exception, env)
      @log.app_failed(exception, request(env))
      html = env && html?(env)
      body = html ? page(exception) : text(exception)
      type = html ? "text/html" : "text/plain"
      [500, { "content-type" => "#{type}; charset=utf-8", "content-length" => body.bytesize.to_s }, [body]]
    end

    private

    # The method and the path, escaped so that it cannot start a new line. The query may contain secrets and is left out.
    def request(env)
      return unless env

      "#{env["REQUEST_METHOD"]} #{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}".b.gsub(/[^\x21-\x7e ]/n) { |byte| format("%%%02X", byte.ord) }
    end

    def html?(env)
      env["HTTP_ACCEPT"].to_s.include?("text/html")
    end

    def text(exception)
      "#{TITLE}\n\n#{@details ? details(exception) : HINT}\n"
    end

    def page(exception)
      require "cgi/escape"
      content = @details ? "<pre>#{CGI.escapeHTML(details(exception))}</pre>" : "<p>#{HINT}</p>"
      "<!DOCTYPE html>\n<html lang=\"en\"><head><title>#{TITLE}</title></head>" \
        "<body><h1>#{TITLE}</h1>#{content}</body></html>\n"
    end

    def details(exception)
      "#{exception.class}: #{exception.message}\n\n#{exception.backtrace&.join("\n")}".scrub
    end
  end
end
