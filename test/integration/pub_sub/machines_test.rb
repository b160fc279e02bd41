# frozen_string_literal: true

require "test_helper"
require "support/machines"

# Two servers with two workers each, as on two machines, connected by a broker.
module PubSubMachines
  include Fairlead::Test::Machines

  SETUP = <<~RUBY
    Fairlead::PubSub.default = Fairlead::PubSub.for(ENV.fetch("TEST_BROKER"), **eval(ENV.fetch("TEST_OPTIONS")))
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

  # Clients of both servers listen while the broker is killed and comes back.
  def test_a_broker_that_is_killed_and_comes_back_is_heard_again_by_every_worker
    clients = [machine, machine].flat_map { |server| clients_of_both_workers(server) }
    clients.each { |client| does(client, "subscribe", "news") }
    @broker.kill
    does(clients.first, "publish", "news")
    @broker.start
    silent = clients.dup
    wait_until("the messages", seconds: 30) do
      clients.each { |client| client.send_text("publish news") }
      silent.reject! { |client| heard(client).include?("to news") }
      silent.empty?
    end
  end

  private

  def machine = pushing(HANDLER, "-w", 2, "-t", 2, setup: SETUP, environment: environment)

  def environment = { "TEST_BROKER" => @broker.url, "TEST_OPTIONS" => options.inspect }

  def options = {}

  def does(client, *words)
    client.send_text(words.join(" "))
    assert_equal [:text, "done"], client.receive
  end
end

class RedisMachinesTest < Minitest::Test
  include PubSubMachines

  def test_redis_hears_of_the_last_client_of_a_channel_however_it_goes
    server = machine
    clients = clients_of_both_workers(server)
    clients.each { |client| does(client, "subscribe", "news") }
    assert_equal 2, @broker.subscribers("news")
    clients.first.drop(reset: true)
    wait_until("the end of the first one") { @broker.subscribers("news") == 1 }
    clients.last.close(1000)

    wait_until("the end of the last one") { @broker.subscribers("news").zero? }
    assert_equal 2, @broker.subscribers("notes")
  end

  private

  def broker_class = Fairlead::Test::RedisServer
end

class PostgresMachinesTest < Minitest::Test
  include PubSubMachines

  private

  def broker_class = Fairlead::Test::PostgresServer
  def options = { patterns: true }
end

class NATSMachinesTest < Minitest::Test
  include PubSubMachines

  private

  def broker_class = Fairlead::Test::NATSServer
end
