# frozen_string_literal: true

module Fairlead
  # Rack middleware that names the server in the field `server` of every response of the application that has none.
  class ServerField
    NAME = "server"

    def initialize(app, value)
      @app = app
      @value = value.dup.freeze
    end

    def call(env)
      status, fields, body = @app.call(env)
      return [status, fields, body] if fields.any? { |name, _| name.to_s.casecmp?(NAME) }

      fields = fields.to_h.dup if fields.frozen? || !fields.respond_to?(:[]=)
      fields[NAME] = @value
      [status, fields, body]
    end
  end
end
