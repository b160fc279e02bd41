# frozen_string_literal: true

require "test_helper"
require "support/board_file"
require "support/http_client"

# Workers that are killed one after another under a load that keeps requests in the waiting room. Only the requests in a
# killed worker are lost: the ones that it was running, its own and those from the waiting room, and the ones on its own
# connections.
class KillsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  KILLS = 4
  CLIENTS = 16

  # Notes each request at its beginning.
  APP = <<~RUBY
    BEGUN = File.open(File.expand_path("begun", __dir__), File::WRONLY | File::APPEND | File::CREAT)
    run lambda { |env|
      BEGUN.syswrite("\#{env["PATH_INFO"]} \#{Process.pid}\\n")
      sleep 0.01
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  # +home+: the worker that has sent the previous response on that connection; nil for the first request.
  Loss = Struct.new(:path, :home)

  def test_only_what_a_killed_worker_had_in_hand_is_lost
    server = serve(APP, "-w", 2, "-t", 2, "-C", "board.rb", files: { "board.rb" => Fairlead::Test::BoardFile::SCRIPT })
    board = Fairlead::Test::BoardFile.new(server)
    killed = []
    losses = under_load(server) { KILLS.times { killed << kill_one(server) } }

    assert_empty not_in_hand(server, losses, killed)
    assert_operator board["moved"], :>, KILLS
    wait_until("an empty waiting room") { board["waiting"].zero? }
  end

  private

  # Losses that no killed worker can explain.
  def not_in_hand(server, losses, killed)
    begun = File.readlines(server.path("begun")).to_h(&:split)
    losses.reject do |loss|
      begun.key?(loss.path) ? killed.include?(begun[loss.path].to_i) : loss.home.nil? || killed.include?(loss.home)
    end
  end

  # Kills a worker once both are serving; returns its id.
  def kill_one(server)
    pids = server.wait_for_workers(2)
    wait_until("requests in all workers") { File.readlines(server.path("begun")).last(CLIENTS).map { |line| line.split.last.to_i }.uniq.sort == pids }
    Process.kill(:KILL, pids.sample)
    wait_until("the end of one") { server.worker_pids != pids }
    (pids - server.worker_pids).first
  end

  def under_load(server)
    running = true
    clients = Array.new(CLIENTS) { |number| Thread.new { losses(server, number) { running } } }
    yield
    running = false
    clients.flat_map(&:value)
  ensure
    running = false
  end

  # Sends requests while the block is true; returns the ones without a response.
  def losses(server, number)
    lost = []
    client = nil
    (1..).each do |count|
      return lost unless yield

      client ||= (home = nil) || connect(server)
      path = "/#{number}/#{count}"
      home = client.get(path).body.to_i
    rescue Fairlead::Test::HttpClient::CutOff, SystemCallError
      lost << Loss.new(path, home)
      client = nil
    end
  end
end
