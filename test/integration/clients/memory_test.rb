# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"

# The memory for a crowd of clients is free again after they have left, and so is memory of the application after a busy time.
class MemoryTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  APP = "run ->(env) { [200, {}, ['hello']] }"
  CROWD = 1000
  SMALL_CROWD = 600
  HTTP2_PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0".b
  MEBIBYTE = 1024**2

  def test_memory_of_bodies
    assert_given_back { "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 110000\r\n\r\n#{"y" * 105_000}" }
  end

  def test_memory_of_heads
    assert_given_back { "GET / HTTP/1.1\r\nhost: a\r\nx-long: #{"y" * 60_000}" }
  end

  # It is less than is worth the work in a large process.
  def test_memory_of_a_small_crowd
    server = serve(APP)
    pid = server.serving_pid
    get(server)
    crowd = Array.new(SMALL_CROWD) { connect(server).write(HTTP2_PREFACE) }
    crowd.each { |client| client.socket.readpartial(1) }
    used = memory(pid)
    crowd.each(&:close)

    wait_until("free memory", seconds: 40) { memory(pid) < used - (4 * MEBIBYTE) }
    assert_equal "hello", get(server).body
  end

  # The polling thread keeps its stack.
  def test_stacks_of_threads_that_wait
    server = serve(<<~RUBY, "-t", "4:4")
      def deep(level) = level.zero? ? 0 : [level].sum { deep(level - 1) }

      run(lambda do |env|
        deep(700)
        sleep 0.01 until File.exist?("end")
        [200, {}, ["hello"]]
      end)
    RUBY
    clients = Array.new(4) { connect(server).write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") }
    wait_until("large stacks") { large_stacks(server.serving_pid) == 4 }
    server.write("end", "")
    clients.each { |client| assert_equal 200, client.answer.status }

    wait_until("smaller stacks") { large_stacks(server.serving_pid) < 2 }
    assert_equal "hello", get(server).body
  end

  # The Strings are garbage. A few Strings between them stay, and keep the allocator from returning the memory.
  def test_memory_that_the_application_has_freed
    server = serve(<<~RUBY)
      KEPT = []
      run(lambda do |env|
        strings = Array.new(1200) { "x" * 100_000 }
        KEPT.concat(strings.map { |string| string[0, 1000] }) if KEPT.empty?
        strings.clear
        [200, {}, ["hello"]]
      end)
    RUBY
    before = memory(server.serving_pid)
    get(server)
    used = memory(server.serving_pid)

    assert_operator used, :>, before + (40 * MEBIBYTE)
    wait_until("free memory", seconds: 40) { memory(server.serving_pid) < before + (16 * MEBIBYTE) }
    assert_equal "hello", get(server).body
  end

  # A collection of young objects stops the threads for a short time. Objects that have become old need another one.
  def test_all_objects_are_collected_only_if_that_is_necessary
    server = serve(<<~'RUBY')
      HELD = []
      run(lambda do |env|
        case env["PATH_INFO"]
        when "/young"
          GC.start
          Array.new(140) { "x" * 100_000 } # less than makes Ruby collect garbage itself
        when "/old"
          HELD.replace(Array.new(1200) { "x" * 100_000 })
          4.times { GC.start }
          HELD.clear
        end
        [200, {}, [GC.stat(:major_gc_count).to_s]]
      end)
    RUBY
    get(server)
    before = memory(server.serving_pid)
    collections = get(server, "/young").body

    assert_operator memory(server.serving_pid), :>, before + (10 * MEBIBYTE)
    wait_until("free memory", seconds: 40) { memory(server.serving_pid) < before + (7 * MEBIBYTE) }
    assert_equal collections, get(server).body
    collections = get(server, "/old").body

    wait_until("free memory of old objects", seconds: 60) { memory(server.serving_pid) < before + (16 * MEBIBYTE) }
    assert_operator get(server).body.to_i, :>, collections.to_i
  end

  # Before Ruby 3.4 each major collection writes to memory that workers share.
  def test_workers_that_share_memory_return_it_without_a_collection
    skip "it costs nothing with this Ruby" if RUBY_VERSION >= "3.4"
    server = serve(<<~'RUBY', "-w", 1, "--preload")
      run(lambda do |env|
        Array.new(1200) { "x" * 100_000 }.each(&:clear) if env["PATH_INFO"] == "/much"
        [200, {}, [GC.stat(:major_gc_count).to_s]]
      end)
    RUBY
    before = memory(server.serving_pid)
    collections = get(server, "/much").body

    wait_until("free memory", seconds: 40) { memory(server.serving_pid) < before + (16 * MEBIBYTE) }
    assert_equal collections, get(server).body
  end

  private

  # Number of stacks of Ruby's threads, of 2 MiB, that have more than 500 KiB in memory.
  def large_stacks(pid)
    mappings = File.read("/proc/#{pid}/smaps").split(/^(?=\h+-\h+ )/)
    mappings.count { |mapping| mapping[/^Size: +(\d+)/, 1].to_i == 2048 && mapping[/^Rss: +(\d+)/, 1].to_i > 500 }
  end

  # The block returns the bytes that each client of the crowd sends before it leaves.
  def assert_given_back
    server = serve(APP)
    get(server)
    before = memory(server.serving_pid)
    crowd = Array.new(CROWD) { connect(server).write(yield) }
    wait_until("used memory") { memory(server.serving_pid) > before + (40 * MEBIBYTE) }
    crowd.each(&:close)

    wait_until("free memory") { memory(server.serving_pid) < before + (16 * MEBIBYTE) }
    assert_equal "hello", get(server).body
  end
end
