# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# An exception, or the end of the thread, while the env is built: the request fails, and nothing else.
class EnvInterruptedTest < Minitest::Test
  include Fairlead::Test::HttpServing

  SETUP = <<~RUBY
    require "stringio"
    require "fairlead/rack/input"
    # The allocation of a body raises, or ends its thread, as another thread could at this moment.
    module Breaking
      def new(*) = Breaking.break(super)
      def for_fd(*) = Breaking.break(super)

      def self.break(input)
        mode, $mode = $mode
        raise IOError, "no input" if mode == "raise"

        Thread.current.kill if mode == "kill"
        input
      end
    end
    StringIO.singleton_class.prepend(Breaking)
    Fairlead::FileInput.singleton_class.prepend(Breaking)
  RUBY

  APP = <<~RUBY
    case env["PATH_INFO"]
    when "/break" then $mode = env["QUERY_STRING"]
    when "/descriptors"
      GC.start
      count = Dir.children("/proc/self/fd").size
    end
    [200, {}, [(count || env["rack.input"].read.to_s.bytesize).to_s]]
  RUBY

  BODIES = { "memory" => "a" * 1000, "a file" => "a" * 3_000_000 }.freeze

  def serve_breaking = serve("#{SETUP}\nrun ->(env) { #{APP} }\n", "--threads", "1:3")

  # On a connection that is closed afterwards, so that the server has no descriptor for it any more.
  def once(server)
    client = connect(server)
    yield client
  ensure
    client.socket.close
  end

  def descriptors(server) = once(server) { |client| Integer(client.get("/descriptors").body) }

  # Breaks the next request with each kind of body, three times.
  def break_requests(server, mode)
    BODIES.each_value do |body|
      3.times do
        once(server) { |client| client.get("/break?#{mode}") }
        once(server) { |client| yield client.request("POST", "/", {}, body:) }
        once(server) { |client| assert_equal body.bytesize.to_s, client.request("POST", "/", {}, body:).answer.body }
      end
    end
  end

  def assert_nothing_is_left(server, before)
    wait_until("as many descriptors as before") { descriptors(server) <= before }
    refute_match(/BUG|panick/, server.stderr)
  end

  def test_an_exception_while_the_env_is_built_fails_this_request_only
    server = serve_breaking
    break_requests(server, "raise", &:answer)
    before = descriptors(server)
    break_requests(server, "raise") { |client| assert_equal 500, client.answer.status }
    assert_nothing_is_left(server, before)
    assert_logged(/no input/, server)
  end

  def test_a_thread_that_ends_while_the_env_is_built_fails_this_request_only
    server = serve_breaking
    break_requests(server, "kill") { |client| read_to_end(client) }
    before = descriptors(server)
    break_requests(server, "kill") { |client| read_to_end(client) }
    assert_nothing_is_left(server, before)
  end

  def read_to_end(client)
    client.answer
  rescue Fairlead::Test::HttpClient::CutOff, SystemCallError
    nil
  end
end
