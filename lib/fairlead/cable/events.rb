# frozen_string_literal: true

require "json"
require "rack"
require "fairlead/cable/event_stream"

module Fairlead
  module Cable
    # A Rack application: the streams of one Action Cable subscription as server-sent events, for clients without a WebSocket.
    #
    #   # config/routes.rb
    #   mount Fairlead::Cable::Events.new => "/events"
    #
    # A request names a channel (`?channel=NewsChannel`), an identifier of Action Cable (`?identifier={…}`) or a stream
    # (`?signed_stream=…`, `?stream=…`).
    class Events
      TEXT = { "content-type" => "text/plain" }.freeze

      def initialize(server = nil)
        @server = server
      end

      def call(env)
        parameters = Extended.query(env)
        identifier = identifier(parameters)
        return response(400, "Name a channel, an identifier, a stream or a signed_stream.") unless identifier
        return response(406, "This is an event stream: accept text/event-stream.") unless env["rack.upgrade?"] == :sse

        stream = EventStream.new(env, raw: parameters["raw"] == "1", since: since(env, parameters))
        return response(401, "Unauthorized") unless stream.admitted?(@server || ::ActionCable.server, identifier)

        env["rack.upgrade"] = stream
        env["rack.response_finished"]&.push(stream.method(:finish))
        [200, {}, []]
      end

      private

      def response(status, text) = [status, TEXT.dup, ["#{text}\n"]]

      def identifier(parameters)
        given = parameters.values_at("channel", "identifier", "stream", "signed_stream")
        return unless given.compact.all? { |value| value.is_a?(String) && value.valid_encoding? }

        channel, identifier, stream, signed = given
        return identifier if identifier
        return JSON.generate(channel: channel) if channel
        return JSON.generate(channel: SignedStreams::NAME, signed_stream_name: signed) if signed

        JSON.generate(channel: SignedStreams::NAME, stream_name: stream) if stream
      end

      # The id of the last event, also in AnyCable's form (offset/stream/epoch), or a time.
      def since(env, parameters)
        id = env["HTTP_LAST_EVENT_ID"]
        return "unknown" unless id.nil? || id.ascii_only?
        return id.sub(%r{\A(\d+)/.*/(\h+)\z}m, '\2.\1') if id && !id.empty?

        Float(parameters["history_since"], exception: false) if parameters["history_since"].is_a?(String)
      end
    end
  end
end
