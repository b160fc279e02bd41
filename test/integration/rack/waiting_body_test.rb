# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/certificates"
require "support/http_client"
require "support/http2_commands"
require "support/processes"
require "support/rack_apps"

# A body that gives more than the socket takes, and then waits: the client gets all of it meanwhile. Each body waits until
# another request comes, which the client sends when it has every byte.
class WaitingBodyTest < Minitest::Test
  include Fairlead::Test::HttpServing
  include Fairlead::Test::Secured
  include Fairlead::Test::Http2Commands
  include Fairlead::Test::Processes

  parallelize_me!

  SIZE = 4_000_000
  TEXT = Array.new(SIZE / 16) { |index| format("%015d\n", index) }.join.freeze

  SETUP = <<~RUBY.freeze
    TEXT = Array.new(#{SIZE / 16}) { |index| format("%015d\\n", index) }.join.freeze
    GO = Queue.new
    GIVE = {
      "/whole" => ->(out) { out << TEXT },
      "/pieces" => ->(out) { 0.step(TEXT.bytesize - 1, 10_000) { |start| out << TEXT.byteslice(start, 10_000) } }
    }.freeze
  RUBY

  # The path says what the body gives, and the query which kind of body it is.
  APP = <<~'RUBY'
    give, plain = GIVE[env["PATH_INFO"]], { "content-type" => "text/plain" }
    case env["PATH_INFO"]
    when "/go"
      GO << true
      next [200, plain, ["gone"]]
    when "/waiting" then next [200, plain, [GO.num_waiting.to_s]]
    end
    case env["QUERY_STRING"]
    when "each" then [200, plain, Enumerator.new { |out| give.call(out) && GO.pop && out << "end" }]
    when "closing"
      body = Enumerator.new { |out| give.call(out) }
      body.define_singleton_method(:close) { GO.pop }
      [200, plain, body]
    when "dying" then [200, plain, Enumerator.new { |out| give.call(out) && GO.pop && raise("on purpose") }]
    when "killed" then [200, plain, Enumerator.new { |out| give.call(out) && GO.pop && Thread.current.kill }]
    when "forking"
      [200, plain, Enumerator.new { |out| give.call(out) && GO.pop && Process.wait(fork || next) && out << "end" }]
    when "threads"
      [200, plain, Enumerator.new { |out| Thread.new { give.call(out) }.join && GO.pop && Thread.new { out << "end" }.join }]
    else
      written = lambda do |stream|
        give.call(stream)
        GO.pop
        stream.write("end")
        stream.close
      rescue IOError => e
        Notes.add(e.class.name)
      end
      [200, plain, written]
    end
  RUBY

  # Name => options: the bytes wait in memory, or in temporary files.
  PLACES = { memory: ["--response-memory-bytes", "16m", "--response-disk-bytes", "0"], file: [] }.freeze
  BODIES = %w[/whole /pieces].product(%w[each stream threads]).map { |path, kind| "#{path}?#{kind}" }.freeze
  FEW = %w[/whole?each /pieces?stream].freeze

  PLACES.each do |place, options|
    define_method(:"test_it_is_sent_from_#{place}") do
      server = serving(*options)
      each_case { |target, late| assert_sent(server, connect(server), target, late: late) }
    end
  end

  def test_it_is_sent_over_tls
    server = serve_tls(unlinted(APP, setup: SETUP), "-t", "4")
    go = adopt(relayed_tls_socket(server.port))
    each_case(FEW) { |target, late| assert_sent(server, adopt(relayed_tls_socket(server.port)), target, late: late, go: go) }
  end

  def test_it_is_sent_over_http2
    server = serving
    each_case(FEW) do |target, late|
      digest = Digest::SHA256.hexdigest("#{TEXT}end")
      assert_equal [SIZE + 3, digest], node(server, format(CLIENT, target: target, late: late, size: SIZE)), "#{target}, late: #{late}"
    end
  end

  def test_a_client_that_reads_slowly_gets_every_byte_too
    server = serving
    client = narrow_client(server).request("GET", "/pieces?each")
    assert_sent(server, client, nil, late: true)
  end

  def test_a_complete_body_is_sent_while_it_is_closed
    server = serving
    BODIES.grep(/each/).each do |target|
      client = connect(server).request("GET", target.sub("each", "closing"))

      assert_equal TEXT, client.answer.body
      release(server)
      assert_equal "0", client.get("/waiting").body, "the connection is kept"
    end
  end

  def test_a_body_that_fails_after_it_has_waited_ends_the_connection
    server = serving
    %w[dying killed].each do |kind|
      client = connect(server).request("GET", "/pieces?#{kind}")
      client.read_through("\r\n\r\n")

      assert_equal TEXT, data(client), kind
      release(server)
      assert_empty client.rest, kind
      assert_equal "0", get(server, "/waiting").body, kind
    end
    assert_logged(/on purpose/, server)
  end

  def test_the_body_hears_of_a_client_that_leaves_while_it_waits
    server = serving
    client = connect(server).request("GET", "/whole?stream")
    client.read_through("\r\n\r\n")
    wait_until_it_waits(server)
    client.reset
    wait_until("the end of the connection") { established(server).zero? }
    release(server)

    assert_equal ["Fairlead::ClosedError"], wait_for_notes(server, 1).map { |name| name.sub(/.*::/, "Fairlead::") }
  end

  def test_a_process_that_the_body_forks_sends_nothing_and_ends
    server = serving
    client = connect(server).request("GET", "/pieces?forking")
    client.read_through("\r\n\r\n")
    wait_until_it_waits(server)
    release(server)

    assert_equal "#{TEXT}end", data(client, "#{TEXT}end".bytesize)
    assert_equal "0\r\n\r\n", client.read(5)
    assert_equal "0", client.get("/waiting").body
  end

  def test_a_server_ends_though_bytes_wait_for_a_client
    server = serving("--shutdown-timeout", 1)
    client = narrow_client(server).request("GET", "/whole?stream")
    client.read_through("\r\n\r\n")
    wait_until_it_waits(server)

    assert_equal 0, server.stop.exitstatus
  end

  CLIENT = <<~'JS'
    const hash = require("crypto").createHash("sha256"), stream = session.request({ ":path": "%<target>s" })
    let count = 0
    stream.on("end", () => say([count, hash.digest("hex")]))
    const read = () => stream.on("data", piece => {
      count += piece.length
      hash.update(piece)
      if (count === %<size>d) ask("/go")
    })
    const wait = () => ask("/waiting").then(([, , body]) => body === "1" ? read() : wait())
    if (%<late>s) wait(); else read()
  JS

  private

  def serving(*options) = serve(unlinted(APP, setup: SETUP), "-t", "4", *options)

  def each_case(bodies = BODIES, &block) = bodies.product([false, true]).each(&block)

  # Sends the request, and checks that the client gets all bytes before the body continues. +late+: the client begins to
  # read when the body waits. +go+: a client for the other requests.
  def assert_sent(server, client, target, late:, go: connect(server))
    client.request("GET", target) if target
    client.read_through("\r\n\r\n")
    wait_until("the body to wait") { go.get("/waiting").body == "1" } if late

    assert_equal TEXT, data(client), "#{target}, late: #{late}"
    go.get("/go")
    assert_equal "3\r\nend\r\n0\r\n\r\n", client.read(13), target
  end

  def wait_until_it_waits(server) = wait_until("the body to wait") { get(server, "/waiting").body == "1" }

  def release(server) = get(server, "/go")

  def established(server)
    local = format(":%04X", server.port)
    File.readlines("/proc/net/tcp").count { |line| line.split.then { |fields| fields[1].end_with?(local) && fields[3] == "01" } }
  end

  # Reads chunks with that many bytes.
  def data(client, count = SIZE)
    data = "".b
    while data.bytesize < count
      data << client.read(Integer(client.read_through("\r\n").chomp, 16))
      client.read(2)
    end
    data
  end
end
