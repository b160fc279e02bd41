# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/launched_by"

# Ruby's M:N scheduler (3.3 and newer, RUBY_MN_THREADS=1) moves Ruby threads between native threads. The engine would then
# mix up the requests of its threads, so it refuses to start.
class NativeThreadsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  MOVING = { "RUBY_MN_THREADS" => "1" }.freeze

  # Each request is waiting when others continue, and then needs its own state.
  APP = <<~RUBY
    run(lambda do |env|
      sleep 0.02
      io = env["rack.hijack"].call
      io.write("HTTP/1.1 200 OK\\r\\ncontent-length: 5\\r\\nconnection: close\\r\\n\\r\\ntaken")
      io.close
      [200, {}, []]
    end)
  RUBY

  def test_the_command_refuses_threads_that_change_their_native_one
    skip_unless_threads_can_move
    server = launch(APP, environment: MOVING)

    assert_equal 1, server.wait_exit.exitstatus
    assert_match(/\Afairlead: RUBY_MN_THREADS: [^\n]+\n\z/, server.stderr)
  end

  def test_so_does_a_server_inside_a_program
    skip_unless_threads_can_move
    program = "require 'fairlead'\nFairlead::Server.new(->(_) {}).run\n"
    server = own(Fairlead::Test::LaunchedBy.new("program.rb", nil, files: { "program.rb" => program }, environment: MOVING)).launch

    assert_equal 1, server.wait_exit.exitstatus
    assert_match(/RUBY_MN_THREADS: .+ \(Fairlead::ConfigurationError\)/, server.stderr)
  end

  def test_with_native_threads_of_their_own_requests_that_wait_keep_what_is_theirs
    server = serve(APP, "-t", "5:5", environment: { "RUBY_MN_THREADS" => "0" })
    clients = Array.new(20) { connect(server).request }

    assert_equal ["taken"], clients.map { |client| client.answer.body }.uniq
  end

  private

  def skip_unless_threads_can_move
    description = IO.popen(MOVING, [RbConfig.ruby, "-e", "print RUBY_DESCRIPTION"], &:read)
    skip "this Ruby does not move threads" unless description.include?("+MN")
  end
end
