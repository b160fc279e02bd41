# frozen_string_literal: true

require "test_helper"
require_relative "../../../bench/harness"

# The scenarios of Action Cable: their load, and the servers that can take it.
class CableTest < Minitest::Test
  # Records the arguments of the load tool.
  class Tool
    attr_reader :asked

    def real_time(*arguments)
      @asked = arguments
      { "seconds" => 1.0, "errors" => { "closed" => 0 }, "bytes" => { "read" => 9 }, "messages" => { "rejected" => 0, "unsent" => 1 },
        "deliveries" => { "per_second" => 2.0, "received" => 2, "lost" => 0 }, "latency_ms" => { "min" => 1.0, "max" => 7.0 } }
    end
  end

  Server = Struct.new(:port) do
    def url(path) = "http://127.0.0.1:#{port}#{path}"
    def tls = nil
  end

  def test_a_broadcast_by_requests_has_listeners_and_a_url
    found = measure("cable-broadcast", "1x3:5000")

    assert_equal [["ws://127.0.0.1:9/cable"], ["http://127.0.0.1:9/publish"], ["0.5"], ["6"], ["5000"]],
                 [@tool.asked.first(1), *%w[--publish --rate --messages -c].map { |name| [value(name)] }]
    refute_includes @tool.asked, "--template"
    assert_equal [7.0, { "unsent" => 1 }], [found.longest, found.errors]
  end

  def test_commands_are_spread_over_publishers
    measure("cable-rtt", "1x3:250")

    assert_equal %w[20 10 200], %w[--rate --publishers --messages].map { |name| value(name) }
    assert_includes value("--template"), '\"action\":\"speak\"'
    refute_includes @tool.asked, "--publish"
  end

  def test_the_app_gets_the_configuration_of_the_adapter
    assert_match(/\ACABLE = \{"adapter" ?=> ?"redis", "path" ?=> ?"x"\}\.freeze\n/, Bench::CableDialect.new("adapter" => "redis", "path" => "x").app)
  end

  def test_async_is_left_out_with_several_processes
    scenario = Bench::Scenario.named("cable-broadcast")
    several = scenario.shapes.reject(&:single?).first
    asked = %w[puma-cable puma-cable-redis puma].select { |name| scenario.asks?(Bench::Server.named(name), several) }

    assert_equal %w[puma-cable-redis], asked
  end

  private

  def measure(name, shape)
    @tool = Tool.new
    dialect = Bench::CableDialect.new("adapter" => "async")
    Bench::Scenario.named(name).drive.measure(Bench::Drive::Target.new(@tool, Server.new(9), Bench::Shape.parse(shape), dialect, "/"), 1)
  end

  def value(name) = @tool.asked[@tool.asked.index(name) + 1]
end
