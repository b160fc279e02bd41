# frozen_string_literal: true

require "digest"
require "json"
require "rack"
require_relative "presence"

# The socket of the page, GET /socket?room=…&name=…&key=…. A message is published on the channel of its room, and the server
# itself delivers it to all visitors of the room, in all workers, without Ruby.
class Chat
  NAME = /\A[[:print:]]{1,32}\z/
  ROOM = /\A[\p{L}\p{N}_-]{1,32}\z/
  KEY = /\A[0-9a-f]{8,64}\z/

  class << self
    # The Presence of this process, also for visitors who come from another worker.
    attr_accessor :presence

    def channel(room) = "chat/room/#{room}"
  end

  def initialize
    Chat.presence = Presence.new do |room, people|
      news = JSON.generate(type: "people", people: people)
      Fairlead.publish(Chat.channel(room), news, Fairlead::PubSub::PROCESS)
    end
  end

  def call(env)
    return refuse(404, "There is nothing here.") unless env["PATH_INFO"] == "/socket"
    return refuse(426, "This is a WebSocket.", "upgrade" => "websocket") unless env["rack.upgrade?"] == :websocket
    return refuse(403, "This chat is for its own page.") unless same_origin?(env)

    visitor = visitor(env["QUERY_STRING"])
    return refuse(400, "A room, a name and a key are needed.") unless visitor

    env["rack.upgrade"] = visitor
    [200, {}, []]
  end

  private

  def refuse(status, why, fields = {})
    [status, { "content-type" => "text/plain; charset=utf-8", **fields }, ["#{why}\n"]]
  end

  # Browsers let any page open a socket to any server; only this field tells the page's origin.
  def same_origin?(env)
    origin = env["HTTP_ORIGIN"]
    origin.nil? || origin.split("://", 2).last == env["HTTP_HOST"]
  end

  # Other visitors see only a digest of the key: it identifies a visitor after a reconnect, and nobody else can take it over.
  def visitor(query)
    room, name, key = Rack::Utils.parse_query(query).values_at("room", "name", "key")
    return unless [[room, ROOM], [name, NAME], [key, KEY]].all? { |text, form| valid?(text, form) }

    Visitor.new(room: room, name: name.strip, id: Digest::SHA256.hexdigest(key)[0, 12])
  rescue ArgumentError, RangeError # invalid %-escapes, too many fields
    nil
  end

  def valid?(text, form) = text.is_a?(String) && text.valid_encoding? && form.match?(text) && !text.strip.empty?

  # A visitor at one window: the handler of one WebSocket. Its methods are called one at a time, in order.
  class Visitor
    LONGEST = 2_000 # characters of a message
    AT_ONCE = 20    # messages …
    WITHIN = 10_000 # … in so many milliseconds

    attr_reader :id

    # Makes a visitor of the new code when a worker is replaced: the window stays connected.
    def self.on_takeover(client, state)
      new(**JSON.parse(state, symbolize_names: true)).tap { |visitor| visitor.on_open(client) }
    end

    def initialize(room:, name:, id:, came_at: nil)
      @room = room
      @name = name
      @id = id
      @came_at = came_at || now
      @said_at = []
    end

    # The data that other visitors get.
    def card = { name: @name, at: @came_at }

    def on_open(client)
      client.subscribe(Chat.channel(@room))
      tell(client, type: "welcome", id: @id, at: @came_at, worker: Process.pid)
      tell(client, type: "people", people: Chat.presence.people(@room))
      Chat.presence.enter(@room, self)
    end

    def on_message(client, data)
      message = parse(data)
      problem = problem(message["text"])
      return tell(client, type: "refused", key: key(message), why: problem) if problem

      client.publish(Chat.channel(@room), JSON.generate(said(message)))
    end

    # The visitor leaves this worker, and not the room.
    def on_handover(client)
      on_close(client)
      JSON.generate(room: @room, name: @name, id: @id, came_at: @came_at)
    end

    def on_close(_client) = Chat.presence.leave(@room, self)

    private

    def tell(client, news) = client.write(JSON.generate(news))

    def said(message)
      { type: "message", key: key(message), from: { id: @id, name: @name }, text: message["text"].strip, at: now }
    end

    # Milliseconds, as in JavaScript.
    def now = (Time.now.to_f * 1000).round

    # The window identifies its messages by a key of its own.
    def key(message) = message["key"].to_s[0, 64]

    def parse(data)
      message = JSON.parse(data)
      message.is_a?(Hash) ? message : {}
    rescue JSON::ParserError, EncodingError
      {}
    end

    def problem(text)
      return "That was not a message." unless text.is_a?(String)
      return "There is nothing in it." if text.strip.empty?
      return "That is #{text.length} characters; #{LONGEST} fit." if text.length > LONGEST

      "That was a lot at once. Take a breath, then send it again." if hasty?
    end

    def hasty?
      @said_at.reject! { |at| at < now - WITHIN }
      return true if @said_at.size >= AT_ONCE

      @said_at << now
      false
    end
  end
end
