# frozen_string_literal: true

require "test_helper"
require "support/machines"

# Broadcasts of Action Cable on two servers with two workers each, as on two machines: through a broker into the history of both.
module CableBrokers
  include Fairlead::Test::Machines

  SETUP = <<~RUBY
    Fairlead::Cable.connect(ENV.fetch("TEST_BROKER"))
  RUBY

  HANDLER = <<~RUBY
    def on_open(client)
      client.subscribe("news")
      client.write("worker \#{Process.pid}")
    end

    def on_message(client, text)
      verb, name, rest = text.split(" ", 3)
      case verb
      when "broadcast" then client.write("sent \#{Fairlead::Cable.broadcast(name, rest)}")
      when "history" then client.write("history " + Fairlead::PubSub.history(name, since: 0, most: 10_000).map(&:last).join(" "))
      when "leads" then client.write("leads \#{Fairlead::Native.lead}")
      when "statistics" then client.write("statistics \#{Fairlead::PubSub.statistics.values.first[:published]}")
      end
    end
  RUBY

  def test_a_broadcast_is_once_in_the_history_of_each_server_and_reaches_each_client_once
    servers = [machine, machine]
    clients = servers.flat_map { |server| clients_of_both_workers(server) }
    20.times { |number| assert_equal "sent true", ask(clients[number % 4], "broadcast news n#{number}") }
    20.times { |number| ask(clients[number % 4], "broadcast without-subscribers w#{number}") }
    wait_until("all messages") { clients.all? { |client| heard(client).size >= 20 } }

    clients.each { |client| assert_equal numbers("n", 20), heard(client).sort_by { |text| text[1..].to_i } }
    %w[news without-subscribers].zip(%w[n w]) do |name, letter|
      servers.each_index do |index|
        wait_until("all of #{name}") { history(clients[index * 2], name).size >= 20 }
        assert_equal numbers(letter, 20), history(clients[index * 2], name), name
      end
    end
    assert_equal "statistics 10", ask(clients.first, "statistics")
  end

  def test_when_the_leader_is_killed_under_load_nothing_is_lost_or_comes_twice
    server = machine
    (leader,), (_, other) = clients_by_worker(server).partition { |_, client| ask(client, "leads") == "leads true" }.map(&:first)
    sender = clients_of_both_workers(machine).first
    100.times { |number| ask(sender, "broadcast news n#{number}") }
    Process.kill(:KILL, leader)
    100.times { |number| ask(sender, "broadcast news n#{number + 100}") }

    wait_until("the next leader", seconds: 20) { history(other, "news").size >= 200 && heard(other).size >= 200 }
    assert_equal numbers("n", 200), history(other, "news").sort_by { |text| text[1..].to_i }
    assert_equal numbers("n", 200), heard(other).sort_by { |text| text[1..].to_i }
  end

  def test_during_a_restart_nothing_is_lost_or_comes_twice
    server = machine
    sender = clients_of_both_workers(machine).first
    server.signal(:USR1)
    count = 0
    wait_until("the restart", seconds: 60) do
      ask(sender, "broadcast news n#{count}").then { count += 1 }
      server.stdout.include?("phased restart: done")
    end
    client = clients_of_both_workers(server).first

    wait_until("the last message") { history(client, "news").include?("n#{count - 1}") }
    assert_equal numbers("n", count), history(client, "news").sort_by { |text| text[1..].to_i }
  end

  def test_while_the_broker_is_away_a_server_broadcasts_to_its_own_clients
    clients = [machine, machine].flat_map { |server| clients_of_both_workers(server) }
    @broker.kill
    wait_until("an outage") { ask(clients.first, "broadcast news x") == "sent false" && heard(clients[1]).include?("x") }
    assert_equal "sent false", ask(clients.first, "broadcast news alone")
    clients.first(2).each { |client| wait_until("the message") { heard(client).include?("alone") } }
    @broker.start
    wait_until("its return", seconds: 20) { ask(clients.first, "broadcast news back") == "sent true" }
    wait_until("all of them", seconds: 20) do
      ask(clients.first, "broadcast news again")
      clients.all? { |client| heard(client).include?("again") }
    end

    refute(clients.last(2).any? { |client| heard(client).include?("alone") })
  end

  private

  def machine = pushing(HANDLER, "-w", 2, "-t", 2, setup: SETUP, environment: { "TEST_BROKER" => @broker.url })

  # Sends a command and returns the response. Broadcasts stay unread.
  def ask(client, command)
    verb = { "broadcast" => "sent" }.fetch(command[/\w+/], command[/\w+/])
    client.send_text(command)
    client.wait_for("a response") { client.messages.any? { |_, text| text.start_with?("#{verb} ") } }
    client.messages.delete_at(client.messages.index { |_, text| text.start_with?("#{verb} ") }).last
  end

  def history(client, name) = ask(client, "history #{name}").split.drop(1)

  def numbers(letter, count) = Array.new(count) { |number| "#{letter}#{number}" }
end

class RedisCableBrokerTest < Minitest::Test
  include CableBrokers

  private

  def broker_class = Fairlead::Test::RedisServer
end

class PostgresCableBrokerTest < Minitest::Test
  include CableBrokers

  private

  def broker_class = Fairlead::Test::PostgresServer
end

class NATSCableBrokerTest < Minitest::Test
  include CableBrokers

  private

  def broker_class = Fairlead::Test::NATSServer
end
