# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# max_threads includes threads that are still starting.
class ThreadLimitTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  # The first two threads start at once; the others wait for a file "go". Each writes a line.
  CONFIGURATION = <<~RUBY
    starts = 0
    before_thread_start do
      $stderr.syswrite("a thread starts\\n")
      sleep 0.005 until (starts += 1) <= 2 || File.exist?("go")
    end
  RUBY

  APP = "run ->(env) { sleep 0.02; [200, {}, ['ok']] }"

  def test_threads_that_start_slowly_count
    server = serve(APP, "-t", "0:5", "-C", "fairlead.rb", files: { "fairlead.rb" => CONFIGURATION })
    clients = Array.new(20) { connect(server) }
    10.times do
      clients.each(&:request)

      assert_equal ["ok"], clients.map { |client| client.answer.body }.uniq
    end
    started = server.stderr.scan("a thread starts").size
    server.write("go", "")

    assert_includes 3..5, started
  end

  def test_a_thread_that_dies_while_it_starts_is_replaced
    server = serve(APP, "-t", "2:4", "-C", "fairlead.rb", files: { "fairlead.rb" => <<~RUBY })
      starts = 0
      before_thread_start { Thread.current.kill if (starts += 1).odd? && starts < 9 }
    RUBY
    clients = Array.new(8) { connect(server).request }

    assert_equal ["ok"], clients.map { |client| client.answer.body }.uniq
    assert_match(/thread fairlead \d+ was killed by before_thread_start/, server.stderr)
  end

  def test_a_hook_that_ends_every_thread_keeps_no_process_busy
    server = serve(APP, "-t", "1:1", "-C", "fairlead.rb", files: { "fairlead.rb" => "before_thread_start { exit 2 }" })
    wait_until("three attempts") { server.stderr.scan(/thread fairlead \d+ ended/).size >= 3 }

    assert_operator server.stderr.scan(/thread fairlead \d+ ended/).size, :<, 20
    assert_equal 0, server.stop(:QUIT).exitstatus
  end
end
