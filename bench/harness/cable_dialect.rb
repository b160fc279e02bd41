# frozen_string_literal: true

require_relative "dialect"

module Bench
  # The dialect of Action Cable: clients subscribe and send messages by commands. `cable` is the configuration of its
  # adapter, as in cable.yml.
  class CableDialect < Dialect
    # Names of the servers in the scenarios of Action Cable.
    SERVERS = %w[fairlead-cable puma-cable puma-cable-redis].freeze

    IDENTIFIER = '"identifier":"{\"channel\":\"ChatChannel\"}"'
    SUBSCRIBE = ["--protocol", "actioncable-v1-json", "--welcome", "welcome",
                 "--hello", %({"command":"subscribe",#{IDENTIFIER}}), "--ready", "confirm_subscription"].freeze
    SPEAK = ["--template", %({"command":"message",#{IDENTIFIER},"data":"{\\"action\\":\\"speak\\",\\"text\\":\\"%s\\"}"})].freeze

    def initialize(cable)
      super(name: "action_cable", chat: "/cable", publish: "/publish", arguments: { idle: SUBSCRIBE, listen: SUBSCRIBE, chat: SUBSCRIBE + SPEAK },
            one_process: cable.fetch("adapter") == "async")
      @cable = cable
    end

    def app
      "CABLE = #{@cable.inspect}.freeze\n#{super}"
    end
  end
end
