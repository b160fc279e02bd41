# frozen_string_literal: true

require "test_helper"
require "support/file_serving"

# Static files on connections with more than one request: in order, between responses of the application, in every version,
# in every worker, and in the access log.
class FileConnectionsTest < Minitest::Test
  include Fairlead::Test::FileServing

  FILES = (1..20).to_h { |number| ["#{number}.txt", "file #{number} " * (number * number)] }.freeze

  def test_many_requests_on_one_connection
    client = connect(serve_public(FILES.merge("large.bin" => noise(500_000))))

    FILES.each { |name, content| 10.times { assert_file content, client.get("/#{name}") } }
    3.times { assert_file noise(500_000), client.get("/large.bin") }
    assert_file FILES["1.txt"], client.get("/1.txt")
  end

  def test_200_requests_at_once_are_answered_in_order
    client = connect(serve_public(FILES))
    names = FILES.keys * 10

    client.write(names.map { |name| "GET /#{name} HTTP/1.1\r\nhost: a\r\n\r\n" }.join)

    names.each { |name| assert_file FILES[name], client.answer, name }
  end

  def test_answers_of_the_folder_and_of_the_application_keep_their_order
    files = FILES.merge("large.bin" => noise(300_000))
    client = connect(serve_public(files, "-t", "5"))
    steps = %w[/1.txt /app/1 /large.bin /20.txt /app/2 /app/3 /large.bin /2.txt] * 15

    client.write(steps.map { |path| "GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n" }.join)

    steps.each do |path|
      answer = client.answer
      path.start_with?("/app") ? assert_equal("GET #{path}", answer.body) : assert_file(files[path.delete_prefix("/")], answer, path)
    end
  end

  def test_head_and_get_and_not_modified_in_one_go
    client = connect(serve_public(FILES))
    etag = client.get("/1.txt")["etag"]

    same = { "if-none-match" => etag }
    client.request("HEAD", "/1.txt", same).request("GET", "/1.txt", same).request("GET", "/2.txt", same)

    assert_equal 304, client.answer(to: "HEAD").status
    assert_equal 304, client.answer.status
    assert_file FILES["2.txt"], client.answer
  end

  def test_the_connection_ends_when_the_client_says_so
    server = serve_public({ "small.txt" => "small", "large.bin" => noise(500_000) })

    { "/small.txt" => "small", "/large.bin" => noise(500_000) }.each do |path, content|
      client = connect(server)
      answer = client.get(path, "connection" => "close")
      assert_file content, answer
      assert_equal "close", answer["connection"]
      assert_predicate client, :closed?
    end
  end

  def test_clients_of_http_one_point_oh
    server = serve_public({ "small.txt" => "small", "large.bin" => noise(500_000) })

    { "/small.txt" => "small", "/large.bin" => noise(500_000) }.each do |path, content|
      client = connect(server).write("GET #{path} HTTP/1.0\r\n\r\n")
      assert_file content, client.answer, path
      assert_predicate client, :closed?, path
    end
    client = connect(server)
    2.times do
      answer = client.write("GET /small.txt HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").answer
      assert_file "small", answer
      assert_equal "keep-alive", answer["connection"]
    end
  end

  def test_a_client_that_only_says_that_it_sends_no_more_gets_everything
    server = serve_public({ "large.bin" => noise(3_000_000) })
    client = narrow_client(server).request("GET", "/large.bin")
    client.half_close

    assert_file noise(3_000_000), client.answer
  end

  def test_over_a_unix_socket
    server = serve_public({ "small.txt" => "small", "large.bin" => noise(3_000_000) }, bind: "unix://app.sock")
    client = adopt(UNIXSocket.new(server.path("app.sock")))

    2.times do
      assert_file "small", client.get("/small.txt")
      assert_file noise(3_000_000), client.get("/large.bin")
    end
  end

  def test_a_client_that_asked_for_files_only_is_let_go_when_it_is_idle
    server = serve_public({ "small.txt" => "small", "large.bin" => noise(500_000) }, "--keep-alive-timeout", "0.5", "--head-timeout", "0.5")

    %w[/small.txt /large.bin].each do |path|
      client = connect(server)
      assert_equal 200, client.get(path).status
      assert_predicate client, :closed?, "idle after #{path}"
      client = connect(server)
      assert_equal 200, client.get(path).status
      assert_equal 408, client.write("GET #{path} HTTP/1.1\r\n").answer.status, "slow after #{path}"
    end
  end

  def test_the_head_may_arrive_byte_by_byte
    client = connect(serve_public(FILES))
    "GET /3.txt HTTP/1.1\r\nhost: a\r\n\r\n".each_char { |byte| client.write(byte) }

    assert_file FILES["3.txt"], client.answer
  end

  def test_every_worker_serves_them
    server = serve_public(FILES, "-w", "2")
    workers = server.wait_for_workers(2)
    requests = FILES.keys.map { |name| "GET /#{name} HTTP/1.1\r\nhost: a\r\n\r\n" }.join
    clients = Array.new(20) { connect(server).write(requests) }

    clients.each { |client| FILES.each { |name, content| assert_file content, client.answer, name } }
    assert_equal workers, server.worker_pids
  end

  def test_each_answer_is_a_line_of_the_access_log
    server = serve_public({ "small.txt" => "small", "large.bin" => noise(500_000) }, "--access-log", "access.log", "--access-log-format", "common")
    client = connect(server)
    client.get("/small.txt?a=b")
    etag = client.get("/large.bin")["etag"]
    client.get("/large.bin", "if-none-match" => etag)
    client.get("/large.bin", "range" => "bytes=10-19")
    client.request("HEAD", "/small.txt").answer(to: "HEAD")
    client.get("/missing")

    assert_equal ['"GET /small.txt?a=b HTTP/1.1" 200 5', '"GET /large.bin HTTP/1.1" 200 500000', '"GET /large.bin HTTP/1.1" 304 0',
                  '"GET /large.bin HTTP/1.1" 206 10', '"HEAD /small.txt HTTP/1.1" 200 0', '"GET /missing HTTP/1.1" 404 12'],
                 log_of(server, 6)
  end

  private

  # Returns request, status and bytes of each line, once there are so many.
  def log_of(server, count)
    lines = wait_until("#{count} lines") do
      found = File.exist?(server.path("access.log")) ? File.readlines(server.path("access.log"), chomp: true) : []
      found if found.size >= count
    end
    lines.map { |line| line[/\A127\.0\.0\.1 - - \[[^\]]+\] ("[^"]+" \d+ \d+) \d+\.\d+\z/, 1] || line }
  end
end
