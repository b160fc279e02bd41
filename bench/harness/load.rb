# frozen_string_literal: true

require_relative "load/fairlead"
require_relative "load/wrk"

module Bench
  # The program that sends the requests: our load tool (`fairlead bench`) if it is built, else wrk, which does not count
  # requests per connection.
  module Load
    def self.pick
      [Fairlead, Wrk].map(&:new).find(&:available?) || raise(Error, "no load tool: bin/setup builds ours, or install wrk")
    end

    # A distribution of our tool as a curve: {"min" => …, "p99_9" => …, "max" => …} as {0.0 => …, 99.9 => …, 100.0 => …}
    def self.curve(distribution)
      distribution.reject { |name, value| name == "mean" || value.nil? }.transform_keys do |name|
        { "min" => 0.0, "max" => 100.0 }.fetch(name) { name.delete_prefix("p").tr("_", ".").to_f }
      end
    end
  end
end
