# frozen_string_literal: true

require "test_helper"
require "open3"
require "json"
require "socket"

# `fairlead bench` against a Fairlead server.
class BenchTest < Minitest::Test
  include Fairlead::Test::Servers

  def test_it_measures_a_server_and_finds_its_clients_served_alike
    server = serve("run ->(env) { [200, {}, ['hello']] }", "-t", 2)
    output, errors, status = bench("-c", 5, "-d", 1, server.url)

    assert status.success?, errors
    assert_match(/requests/i, output)
    refute_match(/NaN|panicked/, output + errors)
  end

  def test_a_server_that_is_not_there_is_an_error_in_words
    port = TCPServer.open("127.0.0.1", 0) { |server| server.local_address.ip_port }
    _, errors, status = bench("-d", 1, "http://127.0.0.1:#{port}/")

    refute_predicate status, :success?
    assert_match(/refused/i, errors)
  end

  def test_an_interrupt_prints_what_was_measured
    server = serve("run ->(_env) { File.write('asked', ''); [200, {}, ['hello']] }")
    input, output, _, process = Open3.popen3(*command("-d", 60, "--json", server.url))
    input.close
    wait_until("a request") { File.exist?(File.join(server.directory, "asked")) }
    Process.kill(:INT, process.pid)
    report = JSON.parse(output.read)

    assert_predicate process.value, :success?
    assert report["interrupted"]
    assert_operator report["requests"]["answered"], :>, 0
  end

  private

  def bench(*arguments) = Open3.capture3(*command(*arguments))

  def command(*arguments) = [RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/fairlead", "bench", *arguments.map(&:to_s)]
end
