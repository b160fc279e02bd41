# frozen_string_literal: true

module Bench
  # How applications on a server speak over WebSockets and event streams: there is no interface that all have. A dialect has
  # an app (bench/apps) and says where in it the load tool finds what, and what it must say there.
  Dialect = Struct.new(:name, :echo, :chat, :events, :publish, :arguments, :one_process, keyword_init: true) do
    # name: also of the app's file. echo, chat, events, publish: paths, nil where there is none. arguments: of the load tool
    # for a subscriber, by kind (`chat`); a publisher says the same. one_process: subscriptions are known in the process that has them.
    def app
      File.read(File.join(ROOT, "bench/apps/#{name}.ru"))
    end

    def arguments_for(kind)
      (arguments || {}).fetch(kind, [])
    end
  end

  # Rack's draft of callback objects, as iodine and agoo have it.
  Dialect::RACK_PUSH = Dialect.new(name: "rack_push", echo: "/echo", chat: "/chat", events: "/events", publish: "/publish")

  # faye-websocket over hijacked sockets.
  Dialect::FAYE = Dialect.new(name: "faye", echo: "/echo", chat: "/chat", events: "/events", publish: "/publish", one_process: true)

  # Action Cable: subscribing is a command, and so is speaking.
  Dialect::ACTION_CABLE = begin
    identifier = '"identifier":"{\"channel\":\"ChatChannel\"}"'
    subscribe = ["--protocol", "actioncable-v1-json", "--welcome", "welcome",
                 "--hello", %({"command":"subscribe",#{identifier}}), "--ready", "confirm_subscription"]
    speak = ["--template", %({"command":"message",#{identifier},"data":"{\\"action\\":\\"speak\\",\\"text\\":\\"%s\\"}"})]
    Dialect.new(name: "action_cable", chat: "/cable", arguments: { idle: subscribe, chat: subscribe + speak }, one_process: true)
  end
end
