# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/http_client"
require "support/processes"
require "support/temporary_files"

# Many clients that read large responses slowly or not at all, together more than the limits allow: small requests still get
# a response, memory and disk stay within their totals, and fast readers get all of theirs.
class SlowCrowdTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes
  include Fairlead::Test::TemporaryFiles

  SIZE = 8_000_000
  CROWD = 100
  DISK = 64 * (1024**2)
  MEMORY = 32 * (1024**2)

  APP = <<~RUBY.freeze
    TEXT = ("0123456789abcdef" * #{SIZE / 16}).freeze
    $large = 0
    run lambda { |env|
      next [200, {}, [$large.to_s]] if env["PATH_INFO"] == "/count"
      $large += 1
      [200, { "content-length" => TEXT.bytesize.to_s }, [TEXT]]
    }
  RUBY

  CUT = /aborted the slowest reader/

  def test_a_crowd_that_does_not_read_holds_no_thread_and_no_more_than_the_totals
    server = serve_crowd
    clients = crowd(server)
    taken = []
    # Each small request gets a response, whatever the crowd uses; and each of the crowd has its turn although none of them
    # reads.
    wait_until("every turn of the crowd", seconds: 60) do
      taken << temporary_bytes(server, "unsent")
      count(server) == CROWD
    end
    taken << temporary_bytes(server, "unsent")

    assert_operator taken.max, :<=, DISK
    assert_operator taken.max, :>, 0, "the disk was not used"
    wait_until("the resets at the aborted clients") { lost(clients) >= CROWD - ((DISK + MEMORY) / SIZE) - 8 }
    assert(wait_until("a line for each of them") { server.stderr.scan(CUT).size == lost(clients) })
  end

  def test_who_is_cut_off_gets_a_reset_and_never_what_looks_whole
    server = serve_crowd
    clients = crowd(server)
    wait_until("every turn of the crowd", seconds: 60) { count(server) == CROWD }
    wait_until("an aborted client") { lost(clients).positive? }
    sizes = clients.select { |client| lost?(client) }.map { |client| client.rest.bytesize }

    assert_operator sizes.max, :<, SIZE
  end

  def test_who_reads_well_gets_every_byte_in_the_midst_of_the_crowd
    server = serve_crowd
    clients = crowd(server)
    digests = Array.new(3) { Digest::SHA256.hexdigest(get(server, "/").body) }

    assert_equal [Digest::SHA256.hexdigest("0123456789abcdef" * (SIZE / 16))], digests.uniq
    assert_equal CROWD, clients.size
  end

  def test_memory_and_disk_are_given_back_when_the_crowd_has_gone
    server = serve_crowd("--response-memory-total-bytes", "128m")
    count(server)
    before = memory(server.serving_pid)
    clients = crowd(server)
    wait_until("every turn of the crowd", seconds: 60) { count(server) == CROWD }
    clients.each(&:reset)
    wait_until("the disk to be free") { temporary_bytes(server, "unsent").zero? }

    wait_until("free memory (now #{memory(server.serving_pid)} in use, before #{before})") do
      memory(server.serving_pid) < before + (MEMORY / 2)
    end
  end

  # Without other clients to serve, none is aborted: the threads queue for the disk and for their clients.
  def test_a_few_who_read_slowly_get_every_byte_where_nobody_waits_for_the_threads
    server = serve_crowd("-t", 4, "--response-memory-total-bytes", "2m", "--response-disk-total-bytes", "8m")
    clients = Array.new(4) { narrow_client(server).request("GET", "/") }
    bodies = clients.map { |client| Thread.new { client.answer.body.bytesize } }.map(&:value)

    assert_equal [SIZE], bodies.uniq
    refute_match CUT, server.stderr
  end

  private

  def serve_crowd(*arguments)
    serve(APP, "-t", 2, "--temp-dir", "unsent", "--response-memory-total-bytes", MEMORY, "--response-disk-total-bytes", DISK,
          *arguments, files: { "unsent/.keep" => "" })
  end

  def crowd(server) = Array.new(CROWD) { narrow_client(server).request("GET", "/") }

  def count(server) = Integer(get(server, "/count").body, 10)

  def lost(clients) = clients.count { |client| lost?(client) }

  # Returns true if the connection was reset, without reading the earlier bytes. The states are from tcp_states.h.
  def lost?(client)
    client.socket.getsockopt(:TCP, Socket::TCP_INFO).data.getbyte(0) == 7
  end
end
