# frozen_string_literal: true

require "test_helper"
require "support/board_file"
require "support/http_client"

# remote_address: for the application, for the access log and for the log of refusals.
class RemoteAddressTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = "run ->(env) { sleep env['QUERY_STRING'].to_f; [200, {}, [env['REMOTE_ADDR']]] }"

  LINE = "PROXY TCP4 192.0.2.1 192.0.2.2 40000 80\r\n"
  REQUEST = "GET / HTTP/1.1\r\nhost: a\r\n\r\n"

  # As in Puma's configuration file => address of a client with the field X-Real-IP.
  FIXED = { "set_remote_address :socket" => "127.0.0.1", "set_remote_address :localhost" => "127.0.0.1",
            "set_remote_address '192.0.2.7'" => "192.0.2.7", "set_remote_address header: 'X-Real-IP'" => "192.0.2.1" }.freeze

  def test_it_is_what_the_option_says
    FIXED.each do |text, expected|
      server = serving(text)

      assert_equal expected, get(server, "/", "x-real-ip" => "192.0.2.1, 10.0.0.1").body, text
      assert_equal [expected], logged(server, 1), text
    end
  end

  def test_a_field_that_names_no_address_changes_nothing
    server = serving("set_remote_address header: 'X-Real-IP'")

    ["nobody", "", "192.0.2.1\t evil\" 200"].zip(%w[127.0.0.1 127.0.0.1 192.0.2.1]).each do |value, expected|
      assert_equal expected, get(server, "/", "x-real-ip" => value).body
    end
  end

  def test_a_proxy_says_for_whom_it_speaks
    server = serving("set_remote_address proxy_protocol: :v1")
    client = connect(server).write(LINE + REQUEST)

    assert_equal "192.0.2.1", client.answer.body
    assert_equal "192.0.2.1", client.get.body
    assert_equal %w[192.0.2.1 192.0.2.1], logged(server, 2)
  end

  def test_a_refusal_names_the_client_of_the_proxy
    server = serving("set_remote_address proxy_protocol: :v1")

    assert_equal 400, connect(server).write("#{LINE}NONSENSE\r\n\r\n").answer.status
    assert_logged("from 192.0.2.1:40000", server)
    assert_equal ["192.0.2.1"], logged(server, 1)
  end

  def test_a_connection_that_begins_with_a_request_is_refused
    server = serving("set_remote_address proxy_protocol: :v1")
    client = connect(server).write(REQUEST)

    assert_equal 400, client.answer.status
    assert_predicate client, :closed?
    assert_logged("refused 400 (invalid PROXY line) from 127.0.0.1", server)
  end

  # Each request is in a busy worker, and the other worker runs it.
  def test_a_request_takes_its_client_to_another_worker
    server = serve(APP, "-w", 2, "-t", 1, "--remote-address", "proxy_protocol:v1", "-C", "board.rb",
                   files: { "board.rb" => Fairlead::Test::BoardFile::SCRIPT })
    board = Fairlead::Test::BoardFile.new(server)
    busy = Array.new(2) { connect(server).write("#{LINE}GET /?2 HTTP/1.1\r\nhost: a\r\n\r\n") }
    wait_until("two busy workers") { board["workers"].map { |worker| worker["busy_threads"] } == [1, 1] }
    waiting = Array.new(6) { connect(server).write(LINE + REQUEST) }
    wait_until("all requests in the waiting room") { board["moved"] >= 6 }

    waiting.each do |client|
      assert_equal "192.0.2.1", client.answer.body
      assert_equal "192.0.2.1", client.get.body
    end
    assert_equal [200, 200], busy.map { |client| client.answer.status }
  end

  private

  def serving(text)
    serve(APP, "-C", "config.rb", "--access-log", "access.log", files: { "config.rb" => text })
  end

  # Client addresses in the access log.
  def logged(server, count)
    path = server.path("access.log")
    wait_until("#{count} lines") { (lines = File.readlines(path)).size >= count && lines.map { |line| line.split.first } }
  end
end
