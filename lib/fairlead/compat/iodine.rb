# frozen_string_literal: true

require "fairlead"
require_relative "names"

Fairlead::Compat.claim(:Iodine, "iodine")

# The Ruby API of iodine 0.7 on Fairlead, for applications that name Iodine:
#
#   require "fairlead/compat/iodine"   # instead of the gem
#
# Parts that Fairlead does not have raise NotImplementedError with an alternative. Handlers (`env["rack.upgrade"]`) are the same
# in both.
module Iodine
  VERSION = "0.7 (Fairlead #{Fairlead::VERSION})".freeze

  # The clients that the callbacks of a handler get.
  Connection = Fairlead::Client

  # Parts of iodine that Fairlead does not have, and the alternatives.
  ELSEWHERE = {
    JSON: "use json, which comes with Ruby",
    Mustache: "use the gem mustache",
    Base: "it is internal to iodine"
  }.freeze

  class << self
    # Does nothing; iodine replaces methods of Rack by faster ones.
    def patch_rack = nil

    def connect(*)
      Fairlead::Compat.missing("Iodine.connect", "use a client of the gems async-websocket and faye-websocket")
    end

    def const_missing(name)
      ELSEWHERE.key?(name) ? Fairlead::Compat.missing("Iodine::#{name}", ELSEWHERE[name]) : super
    end
  end
end

require_relative "iodine/timers"
require_relative "iodine/pub_sub"
require_relative "iodine/redis"
require_relative "iodine/states"
require_relative "iodine/settings"
require_relative "iodine/tls"
require_relative "iodine/services"
require_relative "iodine/rack"
