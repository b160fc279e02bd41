# frozen_string_literal: true

require "fairlead/compat/iodine"
require "fairlead/compat/upgrade/connections"
require "fairlead/compat/upgrade/web_socket"
require "fairlead/compat/upgrade/callbacks"

module Fairlead
  module Compat # :nodoc:
    # The upgrade of iodine 0.2 to 0.5, from which Rack Push came, on Rack Push:
    #
    #   require "fairlead/compat/upgrade"
    #   env["upgrade.websocket"] = Chat if env["upgrade.websocket?"]   # or Chat.new(env); "iodine.websocket" is the same
    #
    # The object is the connection: its callbacks take no client, and it gets the methods of Iodine::Websocket. A class is
    # instantiated for each connection. The status of the answer does not matter, its headers are sent.
    #
    # It is a middleware in front of every application of a process that requires this file. Raw TCP (`upgrade.tcp`) is not
    # supported, and `upgrade.tcp?` is never there.
    class Upgrade
      def initialize(app)
        @app = app
      end

      def call(env)
        possible = env["rack.upgrade?"] == :websocket
        env["upgrade.websocket?"] = possible
        answer = @app.call(env)
        object = env["upgrade.websocket"] || env["iodine.websocket"]
        return answer unless object && possible

        env["rack.upgrade"] = Callbacks.new(object)
        [200, answer[1], answer[2]]
      end
    end

    AppLoader.use(Upgrade)
  end
end
