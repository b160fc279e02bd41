# frozen_string_literal: true

require "test_helper"
require "support/restarts"

# Requests to the application before it serves.
class WarmingUpTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Restarts

  # Responds with the processes in which it was warmed up, and with its own.
  APP = <<~'RUBY'
    WARM = []
    run lambda { |env|
      raise "not warm yet" if env["PATH_INFO"] == "/raises"

      WARM << Process.pid if env["fairlead.warm_up"]
      [200, {}, ["#{WARM.uniq.join(" ")} / #{Process.pid}"]]
    }
  RUBY

  def test_the_spawner_makes_the_requests_before_the_fork_and_problems_do_not_stop_the_server
    file = <<~RUBY
      warm_up "/raises", "/"
      warm_up { |requests| requests.get "/block" }
    RUBY
    server = serve(APP, "-w", 2, files: { "config/fairlead.rb" => file })

    assert_match(%r{\A#{server.spawner_pid} / (#{server.worker_pids.join("|")})\z}, answer(server))
    assert_match(/^\[\d+\] warmed up with 11 requests in [\d.]+ s$/, server.stdout)
    assert_match(%r{warm_up: /raises failed: .*not warm yet \(RuntimeError\)}, server.stderr)
  end

  def test_a_worker_that_loads_the_application_itself_makes_them
    server = serve(APP, "-w", 1, "--warm-up", "/")

    assert_equal "#{server.worker_pids.first} / #{server.worker_pids.first}", answer(server)
  end

  def test_so_does_a_server_without_workers
    server = serve(APP, "--warm-up", "/")

    assert_match(%r{\A(\d+) / \1\z}, answer(server))
  end
end
