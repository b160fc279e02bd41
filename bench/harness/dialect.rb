# frozen_string_literal: true

module Bench
  # A server's interface for WebSockets and event streams, as there is no common one. A dialect has an app (bench/apps)
  # with its paths, and the arguments with which the load tool talks to it.
  Dialect = Struct.new(:name, :echo, :chat, :events, :publish, :arguments, :one_process, keyword_init: true) do
    # name: also the name of the app's file. echo, chat, events, publish: paths, or nil. arguments: arguments of the
    # load tool for a subscriber, by kind (`idle`, `listen`, `chat`); a publisher of `chat` uses the same. one_process: a
    # subscription is known only in its own process.
    def app
      File.read(File.join(ROOT, "bench/apps/#{name}.ru"))
    end

    def arguments_for(kind)
      (arguments || {}).fetch(kind, [])
    end
  end

  # Rack's draft of callback objects, implemented by iodine and agoo.
  Dialect::RACK_PUSH = Dialect.new(name: "rack_push", echo: "/echo", chat: "/chat", events: "/events", publish: "/publish")

  # faye-websocket over hijacked sockets.
  Dialect::FAYE = Dialect.new(name: "faye", echo: "/echo", chat: "/chat", events: "/events", publish: "/publish", one_process: true)
end
