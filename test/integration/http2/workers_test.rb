# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/board_file"
require "support/http2_commands"

# Streams of one connection that other workers run: their own worker is busy, and another one has free threads.
class Http2WorkersTest < Minitest::Test
  include Fairlead::Test::Http2Commands

  APP = <<~'RUBY'
    KEPT = []
    class Pieces
      def each = 64.times { |index| yield (index % 10).to_s * 65_536 }
    end
    run lambda { |env|
      env["rack.early_hints"].call("link" => "</#{env["QUERY_STRING"]}.css>") if env["PATH_INFO"] == "/pieces"
      sleep 0.1
      pid = { "pid" => Process.pid.to_s }
      case env["PATH_INFO"]
      when "/pieces" then [200, pid, Pieces.new]
      when "/kept" then [200, pid, ->(stream) { KEPT << stream.tap { stream.write("first, ") } }]
      when "/end" then [200, pid, [KEPT.shift(KEPT.size).each { |stream| stream.write("last") && stream.close }.size.to_s]]
      when "/body" then [200, pid, [env.values_at("SERVER_PROTOCOL", "rack.url_scheme").join(" "), " ", env["rack.input"].read]]
      else [200, pid, [env["QUERY_STRING"]]]
      end
    }
  RUBY
  PIECES = (0..63).map { |index| (index % 10).to_s * 65_536 }.join

  def test_a_slow_handler_is_run_by_all_workers
    server = serving
    seen = node(server, <<~JS)
      const numbers = Array.from({ length: 16 }, (_, number) => String(number))
      Promise.all(numbers.map(number => ask("/?" + number))).then(responses =>
        say(responses.map(([status, fields, body]) => [status, fields.pid, body])))
    JS

    assert_equal((0..15).map { |number| [200, number.to_s] }, seen.map { |status, _, body| [status, body] })
    assert_equal server.worker_pids.map(&:to_s).sort, seen.map { |_, pid, _| pid }.uniq.sort
    moved = board(server)
    assert_operator moved.sum { |worker| worker["moved_out"] }, :>, 0
    assert_equal moved.sum { |worker| worker["moved_out"] }, moved.sum { |worker| worker["moved_in"] }
    assert_equal [1, 16], %w[http2_connections http2_requests].map { |name| moved.sum { |worker| worker[name] } }
  end

  # The response of the other worker is relayed: hints, pieces and their end.
  def test_hints_and_pieces_come_from_the_other_worker_too
    seen = node(serving, <<~JS)
      const { createHash } = require("crypto")
      const one = number => new Promise((done, failed) => {
        const stream = session.request({ ":path": "/pieces?" + number }), hash = createHash("sha256"), hints = []
        let pid
        stream.on("headers", fields => hints.push(fields.link))
        stream.on("response", fields => pid = fields.pid)
        stream.on("data", piece => hash.update(piece))
        stream.on("end", () => done([pid, hints, hash.digest("hex")]))
        stream.on("error", failed)
      })
      Promise.all(Array.from({ length: 12 }, (_, number) => one(number))).then(say)
    JS

    assert_equal 2, seen.map(&:first).uniq.size
    assert_equal((0..11).map { |number| [["</#{number}.css>"], Digest::SHA256.hexdigest(PIECES)] }, seen.map { |_, *rest| rest })
  end

  def test_bodies_of_requests_move_too
    bodies = [10, 100_000, 1_000_000].flat_map { |length| [length] * 4 }
    seen = node(serving, <<~JS)
      const lengths = #{bodies.inspect}
      Promise.all(lengths.map((length, index) => ask("/body", {}, String(index % 10).repeat(length)))).then(responses =>
        say(responses.map(([, fields, body]) => [fields.pid, body.length, body.slice(0, 12) + body.slice(-1)])))
    JS

    assert_equal 2, seen.map(&:first).uniq.size
    expected = bodies.each_with_index.map { |length, index| [length + 12, "HTTP/2 http #{index % 10}"] }
    assert_equal(expected, seen.map { |_, *rest| rest })
  end

  # Requests streams that the application keeps, in any worker, and the id of the worker with the connection.
  KEPT = <<~JS
    const kept = () => new Promise(done => {
      const stream = session.request({ ":path": "/kept" }), heard = { body: "" }
      heard.end = new Promise(ended => stream.on("close", () => ended(stream.rstCode)))
      stream.on("error", () => {})
      stream.on("response", fields => heard.pid = fields.pid)
      stream.on("data", piece => { heard.body += piece; done(heard) })
    })
    const open = async () => {
      const owner = (await ask("/"))[1].pid, all = await Promise.all(Array.from({ length: 8 }, kept))
      return [owner, all, all.filter(one => one.pid !== owner)]
    }
  JS

  def test_a_response_that_goes_on_in_the_other_worker_ends_there
    server = serving
    whole = node(server, <<~JS)
      #{KEPT}
      open().then(async ([owner, all, others]) => {
        let left = 8
        while (left > 0) {
          const ended = await Promise.all(Array.from({ length: 8 }, () => ask("/end")))
          left = ended.reduce((left, [, , count]) => left - Number(count), left)
        }
        say([others.length > 0, await Promise.all(all.map(one => one.end)), all.map(one => one.body)])
      })
    JS

    assert_equal [true, [0] * 8, ["first, last"] * 8], whole
    # A stream is no connection: with its end, no worker has one connection less.
    workers = Fairlead::Test::BoardFile.new(server)
    wait_until("no connection to be left") { workers["workers"].all? { |worker| worker["connections"].zero? } }
  end

  def test_a_response_that_goes_on_in_a_worker_that_is_killed_is_not_whole
    seen = node(serving, <<~JS)
      #{KEPT}
      open().then(async ([owner, all, others]) => {
        process.kill(Number(others[0].pid), "SIGKILL")
        const ends = await Promise.all(others.map(one => one.end))
        say([new Set(ends).size, ends[0], (await ask("/?still"))[2]])
      })
    JS

    assert_equal [1, 2, "still"], seen # INTERNAL_ERROR (RFC 9113 §7)
  end

  private

  def serving
    files = { "board.rb" => Fairlead::Test::BoardFile::SCRIPT }
    serve(APP, "-w", 2, "-t", 2, "--early-hints", "-C", "board.rb", files: files)
  end

  # Statistics of the workers once everything has ended.
  def board(server)
    wait_until("the end of all requests") do
      workers = Fairlead::Test::BoardFile.new(server)["workers"]
      workers if workers.sum { |worker| worker["requests"] } == 16 && workers.sum { |worker| worker["http2_requests"] } == 16
    end
  end
end
