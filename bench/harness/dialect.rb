# frozen_string_literal: true

module Bench
  # A server's interface for WebSockets and event streams, as there is no common one. A dialect has an app (bench/apps)
  # with its paths, and the arguments with which the load tool talks to it.
  Dialect = Struct.new(:name, :echo, :chat, :events, :publish, :arguments, :one_process, keyword_init: true) do
    # name: also the name of the app's file. echo, chat, events, publish: paths, or nil. arguments: arguments of the
    # load tool for a subscriber, by kind (`chat`); a publisher uses the same. one_process: a subscription is known only
    # in its own process.
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

  # Action Cable: commands subscribe and send messages.
  Dialect::ACTION_CABLE = begin
    identifier = '"identifier":"{\"channel\":\"ChatChannel\"}"'
    subscribe = ["--protocol", "actioncable-v1-json", "--welcome", "welcome",
                 "--hello", %({"command":"subscribe",#{identifier}}), "--ready", "confirm_subscription"]
    speak = ["--template", %({"command":"message",#{identifier},"data":"{\\"action\\":\\"speak\\",\\"text\\":\\"%s\\"}"})]
    Dialect.new(name: "action_cable", chat: "/cable", arguments: { idle: subscribe, chat: subscribe + speak }, one_process: true)
  end
end
