# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# The garbage collector in its worst case: at every allocation, and with moving objects. Only the extension holds clients,
# handlers, envs and the blocks of subscriptions.
class CollectorTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  HANDLER = <<~'RUBY'
    def on_open(client)
      client.subscribe("all") { |source, message| client.write("#{source} #{message}".encode("UTF-8")) }
      client.subscribe("direct")
      client.write("open")
    end

    def on_message(client, data) = client.write("#{data} #{client.env["PATH_INFO"]} #{client.handler.equal?(self)}")
    def on_close(client) = Notes.add("closed #{client.env["PATH_INFO"]}")
  RUBY

  # Longest time for a message, in seconds: collections take processor time, of which a busy machine has little.
  PATIENCE = 120

  # A client that waits for another one answers no pings.
  UNHURRIED = ["--ping-interval", 0].freeze

  def test_at_every_allocation
    converse(pushing(HANDLER, "-t", 1, *UNHURRIED), %w[/a], before: "GC.stress = true")
  end

  def test_while_objects_move
    skip "this Ruby cannot move objects" unless GC.respond_to?(:compact)
    converse(pushing(HANDLER, "-t", 2), %w[/a /b /c], before: "GC.compact; GC.start")
  end

  def test_while_objects_move_by_themselves
    skip "this Ruby cannot move objects" unless GC.respond_to?(:auto_compact=)
    # Ruby 3.1 moves objects that it must not if this begins during a collection (see docs/guides/deployment.md). GC.disable ends
    # the collection.
    turn_on = "GC.disable; GC.auto_compact = true; GC.enable"
    converse(pushing(HANDLER, "-t", 2), %w[/a /b /c], before: "#{turn_on}; GC.compact; GC.start")
  end

  private

  def converse(server, paths, before:)
    clients = paths.map { |path| web_socket(server, path) }
    stream = event_stream(server, "/stream")
    assert_equal ["open"], [*clients.map { |client| client.receive.last }, stream.receive.data].uniq
    requested(server, "#{before}; 1")
    2.times do |number|
      assert_equal(paths.map { |path| "#{number} #{path} true" }, clients.map { |client| client.send_text(number.to_s).receive(PATIENCE).last })
      published(server, number)
      heard = [*clients.map { |client| client.receive_all(2, PATIENCE) }, Array.new(2) { stream.receive.data }]
      assert_equal [["all #{number}", "d"]], heard.map(&:sort).uniq
    end
    [*clients, stream].each(&:drop)
    assert_equal [*paths, "/stream"].map { |path| "closed #{path}" }, wait_for_notes(server, clients.size + 1).sort
  end

  def published(server, number)
    code = "Fairlead.publish('all', '#{number}'); Fairlead.publish('direct', 'd')"
    connect(server, seconds: PATIENCE).request("GET", "/", { "x-code" => code, "connection" => "close" }).final_answer
  end
end
