# frozen_string_literal: true

require "test_helper"
require "support/real_time"
require "support/redis_server"

# Two servers with two workers each, as on two machines, connected by Redis.
class PubSubMachinesTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  SETUP = <<~RUBY
    Fairlead::PubSub.default = Fairlead::PubSub::Redis.new(ENV.fetch("TEST_REDIS"))
    Fairlead.subscribe("notes") { |_, text| Notes.add("\#{text} \#{Process.pid}") }
    Fairlead.on(:after_booted) { Fairlead.publish("notes", "booted") }
  RUBY

  # Subscribes to a given channel in a given worker.
  HANDLER = <<~RUBY
    def on_open(client) = client.write("worker \#{Process.pid}")

    def on_message(client, data)
      verb, name, match = data.split
      case verb
      when "subscribe" then client.subscribe(name, match: match&.to_sym)
      when "publish" then client.publish(name, "to \#{name}")
      end
      client.write("done")
    end
  RUBY

  def setup
    skip Fairlead::Test::RedisServer.missing if Fairlead::Test::RedisServer.missing

    @redis = Fairlead::Test::RedisServer.new
  end

  def after_teardown
    super
  ensure
    @redis&.destroy
  end

  def test_a_message_reaches_every_client_of_every_worker_of_every_machine_once
    clients = [machine, machine].flat_map { |server| clients_of_both_workers(server) }
    clients.each do |client|
      does(client, "subscribe", "news")
      does(client, "subscribe", "n*", "redis")
    end
    clients.product(%w[news nothing]) { |client, name| client.send_text("publish #{name}") }
    wanted = [*["to news"] * 2 * clients.size, *["to nothing"] * clients.size, "done", "done"].sort

    clients.each { |client| assert_equal wanted, client.receive_all(wanted.size).sort }
    assert(clients.all? { |client| client.silent?(0.1) })
  end

  def test_every_process_that_subscribed_hears_a_message_of_the_supervisor
    first = machine
    wait_for_notes(first, 2)
    second = machine
    wait_until("the notes of the second") { second.worker_pids.all? { |pid| notes(second).include?("booted #{pid}") } }

    wait_until("its message at the first") { first.worker_pids.all? { |pid| notes(first).count("booted #{pid}") == 2 } }
    assert_equal [4, 2], [notes(first).size, notes(second).size]
  end

  def test_redis_hears_of_the_last_client_of_a_channel_however_it_goes
    server = machine
    clients = clients_of_both_workers(server)
    clients.each { |client| does(client, "subscribe", "news") }
    assert_equal 2, @redis.subscribers("news")
    clients.first.drop(reset: true)
    wait_until("the end of the first one") { @redis.subscribers("news") == 1 }
    clients.last.close(1000)

    wait_until("the end of the last one") { @redis.subscribers("news").zero? }
    assert_equal 2, @redis.subscribers("notes")
  end

  private

  def machine = pushing(HANDLER, "-w", 2, "-t", 2, setup: SETUP, environment: { "TEST_REDIS" => @redis.url })

  # Returns a client of each worker.
  def clients_of_both_workers(server)
    by_worker = {}
    wait_until("clients in both workers") do
      client = web_socket(server)
      by_worker[client.receive.last] ||= client
      by_worker.size == 2
    end
    by_worker.values
  end

  def does(client, *words)
    client.send_text(words.join(" "))
    assert_equal [:text, "done"], client.receive
  end
end
