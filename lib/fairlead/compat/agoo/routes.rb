# frozen_string_literal: true

module Agoo
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
end
