# frozen_string_literal: true

require_relative "load/fairlead"
require_relative "load/wrk"

module Bench
  # The program that makes the requests. Ours (`fairlead bench`) where it can be built, else wrk, which does not count
  # requests per connection.
  module Load
    def self.pick
      [Fairlead, Wrk].map(&:new).find(&:available?) || raise(Error, "no load tool: cargo builds ours, or install wrk")
    end
  end
end
