# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"

# Clients that keep to the limits of a request, but together send more than the limit of the process.
class RequestTotalsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  APP = 'run ->(env) { [200, {}, ["#{env["rack.input"].read.bytesize} bytes"]] }' # rubocop:disable Lint/InterpolationCheck
  CROWD = 1000
  MEBIBYTE = 1024**2

  def test_large_heads_of_a_crowd_do_not_take_the_memory
    server = serve(APP, "--request-memory-total-bytes", "2m")
    assert_equal "0 bytes", get(server).body
    before = memory(server.serving_pid)
    clients = Array.new(CROWD) { connect(server).write("GET / HTTP/1.1\r\nhost: a\r\nx-long: #{"y" * 60_000}") }

    assert_equal "0 bytes", get(server).body, "small requests are served"
    assert_operator memory(server.serving_pid) - before, :<, 40 * MEBIBYTE
    statuses = clients.map { |client| end_of_head(client) }.tally
    assert_equal [200, 503], statuses.keys.sort
    assert_operator statuses[200], :>=, 20
    assert_equal 200, end_of_head(connect(server).write("GET / HTTP/1.1\r\nhost: a\r\nx-long: #{"y" * 60_000}"))
  end

  def test_bodies_of_a_crowd_do_not_take_the_disk
    server = serve(APP, "--body-disk-total-bytes", "5m", "--body-max-bytes", "2m")
    clients = Array.new(8) { begin_upload(server, MEBIBYTE) }
    statuses = clients.map { |client| end_of_body(client).status }

    assert_equal({ 200 => 5, 503 => 3 }, statuses.tally)
    assert_equal "#{2 * MEBIBYTE} bytes", end_of_body(begin_upload(server, 2 * MEBIBYTE)).body, "the limit must be free again"
  end

  private

  # Sends all but the last byte. Returns when the bytes are stored, or refused.
  def begin_upload(server, size)
    before = stored(server, size - 1)
    client = connect(server)
    client.request("POST", "/", { "content-length" => size })
    client.write("y" * (size - 1))
    wait_until("the body to be stored") { client.readable? || stored(server, size - 1) > before }
    client
  end

  # Counts the files without a name of that size. Their inodes would not help, because the system reuses them.
  def stored(server, size)
    Dir.glob("/proc/#{server.serving_pid}/fd/*").count do |descriptor|
      File.readlink(descriptor).end_with?(" (deleted)") && File.size(descriptor) >= size
    rescue Errno::ENOENT
      false
    end
  end

  def end_of_body(client)
    client.write("y") unless client.readable?
    client.answer
  end

  # A refused connection may have been reset in the meantime.
  def end_of_head(client)
    client.write("\r\n\r\n") unless client.readable?
    client.answer.status
  end
end
