# frozen_string_literal: true

require "test_helper"
require "json"
require "support/postgres_server"
require "support/rails_servers"
require "support/redis_server"
require "support/web_socket"

# The adapter `fairlead` of Action Cable in the generated application: broadcasts of requests, of other workers and of processes beside
# the server.
class RailsBroadcastsTest < Minitest::Test
  include Fairlead::Test::RailsServers
  include Fairlead::Test::WebSockets

  CABLE = "development:\n  adapter: fairlead\n  channel_prefix: shop\ntest:\n  adapter: fairlead\n"
  ROOM = JSON.generate(channel: "RoomChannel")

  SAY = 'ActionCable.server.broadcast("room", { text: "from a runner" })'

  # Makes Rails' own sockets open a while after their response to the handshake. Rails loses commands that come in between.
  OPEN_LATE = {
    "config/initializers/open_late.rb" => <<~RUBY
      require "websocket/driver"
      WebSocket::Driver.prepend(Module.new { private def open = (sleep 0.2; super) })
    RUBY
  }.freeze

  STARTS = {
    "rails_server" => ->(test) { test.rails_server(files: { "config/cable.yml" => CABLE }) },
    "rails_sockets" => ->(test) { test.fairlead("-w", 2, "--cable-sockets", "rails", files: { "config/cable.yml" => CABLE }) },
    "preloaded_workers" => ->(test) { test.fairlead("-w", 2, "--preload", files: { "config/cable.yml" => CABLE }) }
  }.freeze

  STARTS.each do |name, start|
    define_method(:"test_each_client_hears_each_broadcast_once_with_#{name}") do
      server = start.call(self)
      clients = Array.new(6) { in_room(server) }
      speak(clients.first, "from a client")
      clients.each { |client| assert_equal ["from a client"], hear(client, 1) }
      output = rails(server, "runner", "p #{SAY}")

      assert_equal "true\n", output
      assert_equal [["from a runner"]], clients.map { |client| hear(client, 1) }.uniq
      assert(clients.all? { |client| silent?(client) })
    end
  end

  def test_a_runner_broadcasts_during_restarts
    server = fairlead("-w", 2, files: { "config/cable.yml" => CABLE })
    rails(server, "runner", <<~RUBY)
      Process.kill(:USR1, #{server.pid})
      lost = 2_000.times.count { |number| sleep(0.001) && !ActionCable.server.broadcast("room", { number: number }) }
      exit(lost.zero?)
    RUBY
    wait_until("the restart", seconds: SECONDS) { server.stdout.include?("phased restart: done") }
    client = in_room(server)
    rails(server, "runner", SAY)

    assert_equal ["from a runner"], hear(client, 1)
  end

  # Two servers of the application, as on two machines.
  { "redis" => Fairlead::Test::RedisServer, "pg" => Fairlead::Test::PostgresServer }.each do |gem, type|
    define_method(:"test_broadcasts_reach_all_servers_through_the_broker_in_cable_yml_with_#{gem}") do
      skip type.missing if type.missing

      broker = type.new
      files = { "config/cable.yml" => "#{CABLE.lines.first(3).join}  url: #{broker.url.to_json}\n",
                "Gemfile" => "#{Fairlead::Test::RailsApplication.files.fetch("Gemfile")}\ngem #{gem.inspect}\n" }
      servers = Array.new(2) { fairlead("-w", 2, files: files) }
      clients = servers.flat_map { |server| Array.new(3) { in_room(server) } }
      speak(clients.first, "from a client")
      clients.each { |client| assert_equal ["from a client"], hear(client, 1) }
      assert_equal "true\n", rails(servers.first, "runner", "p #{SAY}")
      assert_equal [["from a runner"]], clients.map { |client| hear(client, 1) }.uniq
      assert(clients.all? { |client| silent?(client) })
    ensure
      broker&.destroy
    end
  end

  # As after a change of code in development.
  %w[native rails].each do |sockets|
    define_method(:"test_a_restart_of_action_cable_leaves_no_client_deaf_with_#{sockets}_sockets") { assert_restarts(sockets) }
  end

  def test_without_a_server_nothing_fails_and_the_log_says_so_once
    server = fairlead(files: { "config/cable.yml" => CABLE, "db/seeds.rb" => "3.times { #{SAY} or puts \"not sent\" }" })
    server.stop
    output = rails(server, "db:seed")

    assert_equal "not sent\n" * 3, output
    assert_equal 1, File.read(server.path("log/development.log")).scan(%r{no server listens on \S+/tmp/sockets/fairlead.sock: start it}).size
  end

  # In a process of its own, each subscriber of the process is called, as by `async`, and so is the server.
  def test_a_process_with_subscribers_of_its_own_calls_them_and_the_server_once
    server = fairlead(files: { "config/cable.yml" => CABLE })
    client = in_room(server)
    output = rails(server, "runner", <<~RUBY)
      heard = Queue.new
      ActionCable.server.pubsub.subscribe("room", ->(message) { heard << message }, -> { heard << "subscribed" })
      puts heard.pop
      #{SAY}
      puts heard.pop
      sleep 0.2
      puts heard.size
    RUBY

    assert_equal ["subscribed", '{"text":"from a runner"}', "0"], output.lines(chomp: true)
    assert_equal ["from a runner"], hear(client, 1)
    assert silent?(client)
  end

  def test_a_process_that_a_worker_forks_calls_no_copies
    code = <<~RUBY
      Rails.application.routes.append do
        get("fork", to: ->(_) { Process.wait2(fork { #{SAY}; exit!(0) }); [200, {}, []] })
      end
    RUBY
    server = fairlead("-w", 2, files: { "config/cable.yml" => CABLE, "config/initializers/fork.rb" => code })
    clients = Array.new(4) { in_room(server) }
    assert_equal 200, get(server, "/fork").status

    assert_equal [["from a runner"]], clients.map { |client| hear(client, 1) }.uniq
    assert(clients.all? { |client| silent?(client) })
  end

  private

  def assert_restarts(sockets)
    server = fairlead("--cable-sockets", sockets, files: { "config/cable.yml" => CABLE, **OPEN_LATE })
    client = in_room(server)
    server.write("app/channels/room_channel.rb", "#{File.read(server.path("app/channels/room_channel.rb"))}\n# changed\n")
    version(server)
    assert_equal "server_restart", receive_until(client) { |message| message["type"] == "disconnect" }["reason"]
    again = in_room(server)
    rails(server, "runner", SAY)

    assert_equal ["from a runner"], hear(again, 1)
    assert silent?(again)
  end

  # A client that is subscribed to the room. As Rails' JavaScript does, it waits for the welcome: see OPEN_LATE.
  def in_room(server)
    headers = { "host" => "localhost:#{server.port}", "origin" => "http://localhost:#{server.port}" }
    client = web_socket(server, "/cable", headers: headers, protocols: %w[actioncable-v1-json])
    receive_until(client) { |message| message["type"] == "welcome" }
    client.send_text(JSON.generate(command: "subscribe", identifier: ROOM))
    receive_until(client) { |message| message["type"] == "confirm_subscription" }
    client
  end

  def speak(client, text)
    client.send_text(JSON.generate(command: "message", identifier: ROOM, data: JSON.generate(action: "speak", text: text)))
  end

  # Returns the texts of the next broadcasts.
  def hear(client, count) = Array.new(count) { receive_until(client) { |message| message["message"].is_a?(Hash) }["message"]["text"] }

  # True if only pings arrive until the second of them.
  def silent?(client)
    pings = Array.new(2) { receive_until(client) { |message| message["type"] == "ping" || message["message"].is_a?(Hash) } }
    pings.all? { |message| message["type"] == "ping" }
  end

  def receive_until(client)
    wait_until("a message", seconds: SECONDS) do
      message = JSON.parse(client.receive(SECONDS).last)
      message if yield(message)
    end
  end
end
