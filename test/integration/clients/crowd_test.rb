# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"

# More clients than the server has room for, at once or with invalid requests: the server refuses them with a reason and
# without busy-waiting, and serves new ones as soon as there is room.
class CrowdTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  APP = "run ->(env) { [200, {}, ['hello']] }"
  HOARDER = <<~RUBY
    hoard = []
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/hoard" then loop { hoard << File.open(File::NULL) }
      when "/release" then hoard.each(&:close).clear
      end
      [200, {}, [env["PATH_INFO"] == "/release" ? "released" : "hello"]]
    rescue Errno::EMFILE
      [200, {}, ["EMFILE"]]
    end)
  RUBY
  ONE_A_SECOND = /refused 503 a connection/

  def test_a_connection_above_max_connections_is_refused
    server = serve(APP, "--max-connections", 3)
    clients = Array.new(3) { connect(server).tap(&:get) }
    refusal = connect(server).answer

    assert_equal [503, "close", "1"], [refusal.status, refusal["connection"], refusal["retry-after"]]
    assert_equal([200] * 3, clients.map { |client| client.get.status })
    clients.first.close
    assert_equal "hello", wait_until("a free slot") { served(server) }
  end

  def test_by_default_there_are_as_many_connections_as_descriptors_allow
    server = serve_with_few_descriptors
    answers = crowd(server, 60).map { |client| answer(client) }

    assert_operator answers.count(200), :>, 5
    assert_equal [200, 503], answers.uniq.compact.sort
    server.wait_for_output(/max_connections are open/)
  end

  # The application has taken all descriptors, including the reserved ones.
  def test_without_descriptors_connections_are_refused_in_words_and_the_processor_rests
    server = serve_with_few_descriptors(app: HOARDER)
    witness = connect(server)
    assert_equal "EMFILE", witness.get("/hoard").body
    answers = crowd(server, 60).map { |client| answer(client) }

    assert_equal [503], answers.uniq.compact
    used = processor_time(server.serving_pid)
    nobody_gets_in_for(1.5, server)
    assert_operator processor_time(server.serving_pid) - used, :<, 0.5
    assert_includes 1..5, server.stderr.scan(ONE_A_SECOND).size
    assert_logged(Errno::EMFILE.new.message, server)
    assert_equal "released", witness.get("/release").body
    assert_equal "hello", wait_until("free descriptors") { served(server) }
  end

  def test_five_hundred_clients_at_once_are_all_served
    server = serve(APP, "-t", 5)
    clients = Array.new(500) { connect(server).request }

    assert_equal([["hello"], 500], clients.map { |client| client.answer.body }.then { |bodies| [bodies.uniq, bodies.size] })
    clients.each(&:close)
  end

  def test_garbage_is_refused_and_harms_nobody
    server = serve(APP)
    random = Random.new(7)
    good = connect(server)
    100.times do
      client = connect(server)
      client.write(random.bytes(random.rand(1..3000)))
      client.half_close
      rest = client.rest

      assert_match(%r{\A(HTTP/1\.1 (400|414|431|501|505) |\z)}, rest)
      client.close
    end

    assert_equal "hello", good.get.body
    refute_match(/BUG/, server.stderr)
  end

  private

  # Body of the response, if there is room for the request.
  def served(server)
    answer = get(server)
    answer.body if answer.status == 200
  rescue SystemCallError, Fairlead::Test::HttpClient::CutOff
    nil
  end

  # Returns that many clients. Each has tried to send a request.
  def crowd(server, count)
    Array.new(count) do
      client = connect(server)
      client.request
    rescue SystemCallError
      client
    end
  end

  def answer(client)
    client.answer.status
  rescue SystemCallError, Fairlead::Test::HttpClient::CutOff
    nil
  end

  # Repeats attempts for that long, like real clients.
  def nobody_gets_in_for(seconds, server)
    deadline = monotonic + seconds
    while monotonic < deadline
      refute served(server)
      sleep 0.05
    end
  end

  # Processes inherit the limit; it is a hard one, because the server raises the soft limit.
  def serve_with_few_descriptors(*arguments, app: APP)
    serve(app, "-C", "few.rb", *arguments, files: { "few.rb" => "Process.setrlimit(:NOFILE, 64, 64)" })
  end
end
