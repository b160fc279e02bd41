# frozen_string_literal: true

require "fairlead"
require "fairlead/compat/names"

Fairlead::Compat.claim(:Agoo, "agoo")

# The push API of agoo 2 on Fairlead, for applications that name Agoo:
#
#   require "fairlead/compat/agoo"   # instead of the gem
#
# Handlers are the same in both. agoo/client.rb adds the differences of agoo's clients, to all clients of the process.
# agoo/server.rb starts a server from a plain program. Parts that Fairlead does not have, such as GraphQL, raise
# NotImplementedError with an alternative.
module Agoo
  VERSION = "2.15 (Fairlead #{Fairlead::VERSION})".freeze

  class << self
    # Publishes a message to the subscribers of the subject, and of patterns like "news.*.sport" or "news.>" that match it, in
    # every process. Returns nil.
    def publish(subject, message)
      Fairlead.publish(subject, Agoo::Client.text(message))
      nil
    end

    def unsubscribe(_subject)
      Fairlead::Compat.missing("Agoo.unsubscribe", "let each client unsubscribe itself")
    end

    # Ends the server that Agoo::Server.start has started.
    def shutdown = Server.shutdown

    def const_missing(name)
      return super unless name == :GraphQL

      Fairlead::Compat.missing("Agoo::GraphQL", "use the gem graphql")
    end
  end
end

require "fairlead/compat/agoo/client"
require "fairlead/compat/agoo/log"
require "fairlead/compat/agoo/server"
