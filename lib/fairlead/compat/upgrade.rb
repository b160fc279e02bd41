# frozen_string_literal: true

require "fairlead/compat/iodine"
require "fairlead/compat/upgrade/connections"
require "fairlead/compat/upgrade/web_socket"
require "fairlead/compat/upgrade/callbacks"

module Fairlead
  module Compat # :nodoc:
    # The upgrades of iodine 0.2 to 0.5, the predecessor of `rack.upgrade`:
    #
    #   require "fairlead/compat/upgrade"
    #   env["upgrade.websocket"] = Chat if env["upgrade.websocket?"]   # or Chat.new(env); "iodine.websocket" is the same
    #
    # The handler is the connection: its callbacks do not get a client, and it has the methods of Iodine::Websocket. A class is
    # instantiated for each connection. The status of the response is ignored; its header is sent.
    #
    # This is a middleware in front of all applications of the process. Raw TCP (`upgrade.tcp`) is not supported, and
    # `upgrade.tcp?` is never set.
    class Upgrade
      def initialize(app)
        @app = app
      end

      def call(env)
        possible = env["rack.upgrade?"] == :websocket
        env["upgrade.websocket?"] = possible
        _, header, body = response = @app.call(env)
        object = env["upgrade.websocket"] || env["iodine.websocket"]
        return response unless object && possible

        env["rack.upgrade"] = Callbacks.new(object)
        [200, header, body]
      end
    end

    AppLoader.use(Upgrade)
  end
end
