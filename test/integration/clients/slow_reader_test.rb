# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/http_client"
require "support/processes"
require "support/temporary_files"

# Clients that read a large response slowly, or not at all, from a server with one thread: the thread is free again at once,
# memory stays bounded, and a client that reads nothing is aborted.
class SlowReaderTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes
  include Fairlead::Test::TemporaryFiles

  SIZE = 8_000_000

  # Every kind of body, with the same bytes: a file, one String, many Strings, a stream.
  APP = <<~RUBY.freeze
    BLOCK = "0123456789abcdef" * 4000
    TEXT = (BLOCK * #{SIZE / 64_000}).freeze
    File.write("large", TEXT)
    class Pieces
      def each = #{SIZE / 64_000}.times { yield BLOCK }
      def close = warn("closed")
    end
    class OneFile < Pieces
      def each = yield(TEXT)
      def to_path = File.expand_path("large")
    end
    STREAM = lambda do |stream|
      #{SIZE / 64_000}.times { stream.write(BLOCK) }
    ensure
      stream.close
    end
    run lambda { |env|
      case env["PATH_INFO"]
      when "/file" then [200, { "content-length" => "#{SIZE}" }, OneFile.new]
      when "/string" then [200, {}, [TEXT]]
      when "/each" then [200, {}, Pieces.new]
      when "/stream" then [200, {}, STREAM]
      else [200, {}, ["quick"]]
      end
    }
  RUBY

  KINDS = %w[/file /string /each /stream].freeze

  def test_a_client_that_reads_nothing_holds_no_thread_and_is_cut_off
    server = serve(APP, "-t", 1, "--write-timeout", 1)
    KINDS.each do |kind|
      client = narrow_client(server)
      client.request("GET", kind)

      assert_equal "quick", quick(server), "while #{kind} is not read"
      wait_until("the end of a client that does not read (#{kind})") { established(server).zero? }
      assert_operator client.rest.bytesize, :<, SIZE
    end
    assert_equal KINDS.size, server.stderr.scan("aborted a response: the client did not take it").size
  end

  def test_a_client_that_reads_late_gets_every_byte
    server = serve(APP, "-t", 1)
    clients = KINDS.map { |kind| narrow_client(server).request("GET", kind) }

    assert_equal "quick", quick(server)
    digests = clients.map { |client| Digest::SHA256.hexdigest(client.answer.body) }
    assert_equal [Digest::SHA256.file(server.path("large")).hexdigest], digests.uniq
  end

  def test_a_client_that_reads_below_the_minimum_rate_is_cut_off
    server = serve(APP, "-t", 1, "--write-timeout", 1, "--write-min-rate", 1_000_000)
    client = narrow_client(server).request("GET", "/string")
    taken = 0
    seconds = seconds_of { taken += sip(client) until established(server).zero? }

    assert_operator taken, :>, 0
    assert_includes 0.9..6.0, seconds
  end

  def test_unsent_answers_are_kept_in_temporary_files_without_a_name
    folder = "unsent"
    server = serve(APP, "-t", 1, "--temp-dir", folder, "--response-memory-total-bytes", "160m", files: { "#{folder}/.keep" => "" })
    quick(server)
    before = memory(server.serving_pid)
    clients = Array.new(20) { narrow_client(server).request("GET", "/each") }

    assert_equal "quick", quick(server)
    wait_until("a file for each of them") { temporary_files(server, folder).size == clients.size }
    wait_until("the responses to be on disk") { memory(server.serving_pid) - before < SIZE * 5 }
    assert_equal [".keep"], Dir.children(server.path(folder))
    clients.each(&:reset)
    wait_until("the files to be gone") { temporary_files(server, folder).empty? }
  end

  def test_an_answer_beyond_the_disk_limit_waits_for_its_client_and_is_whole
    server = serve(APP, "-t", 1, "--response-disk-bytes", "1m", "--response-memory-bytes", "64k")
    client = narrow_client(server).request("GET", "/each")

    assert_equal Digest::SHA256.file(server.path("large")).hexdigest, Digest::SHA256.hexdigest(client.answer.body)
    assert_equal "quick", quick(server)
  end

  def test_a_client_that_reads_nothing_beyond_the_disk_limit_gives_the_thread_back_in_time
    server = serve(APP, "-t", 1, "--response-disk-bytes", "1m", "--write-timeout", 1)
    client = narrow_client(server).request("GET", "/each")

    assert_equal "quick", quick(server)
    wait_until("the body to be closed") { server.stderr.include?("closed\n") }
    client.close
  end

  private

  def quick(server) = get(server, "/quick").body

  # Reads a little of the response, with pauses.
  def sip(client)
    sleep 0.1
    client.socket.read_nonblock(2000, exception: false).then { |bytes| bytes.is_a?(String) ? bytes.bytesize : 0 }
  rescue SystemCallError
    0
  end

  # Open connections of the server, from the system's list.
  def established(server)
    local = format(":%04X", server.port)
    File.readlines("/proc/net/tcp").count { |line| line.split.then { |fields| fields[1].end_with?(local) && fields[3] == "01" } }
  end
end
