# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/restarts"

# Files that slow clients download while their worker is replaced: the next worker sends the rest, and the old one ends.
class MovingDownloadsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Restarts

  # More than the kernel keeps for a client that does not read.
  BYTES = 20_000_000

  APP = "run ->(env) { [200, env['PATH_INFO'] == '/named' ? { 'x-sendfile' => File.expand_path('files/large') } : {}, [Process.pid.to_s]] }"

  def test_downloads_go_on_in_other_workers_and_are_logged_once
    server = serve(APP, "-w", 2, "--public", "files", "--sendfile-root", "files", "--access-log", "access.log",
                   files: { "files/large" => Random.bytes(BYTES) })
    clients = %w[/large /named].map { |path| begun(server, path) }
    before = server.worker_pids
    server.signal(:USR1)
    restarted(server)
    wait_until("the ends of the previous workers") { (server.worker_pids & before).empty? }

    assert_equal [File.binread(server.path("files/large"))] * 2, clients.map { |client| client.answer.body }
    assert_empty clients.map { |client| client.get.body.to_i } & before
    assert_equal [BYTES] * 2, logged(server)
    assert_empty server.stderr
  end

  private

  # A client that has asked, and reads nothing.
  def begun(server, path)
    client = connect(server).request("GET", path)
    assert client.readable?(20)
    client
  end

  # The bytes of each download in the access log.
  def logged(server)
    File.readlines(server.path("access.log")).grep(%r{/(?:large|named) }).map { |line| line[/" 200 (\d+)/, 1].to_i }
  end
end
