# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/needed_gems"
require "support/rack_apps"

# Sinatra's `stream`, also with `:keep_open`: its `each` returns while the application keeps the block.
class SinatraStreamsTest < Minitest::Test
  include Fairlead::Test::HttpServing
  include Fairlead::Test::NeededGems

  APP = <<~'RUBY'
    require "sinatra/base"

    class Streams < Sinatra::Base
      set :environment, :production
      OPEN = []

      get("/closed") { stream { |out| 3.times { |n| out << "#{n} " } } }

      get("/open") do
        stream(:keep_open) do |out|
          OPEN << out
          out.callback { File.write("notes", "closed\n", mode: "a") }
          out << "first"
        end
      end

      get("/later") do
        OPEN.last << "secret"
        "nothing was raised"
      rescue IOError => e
        e.class.name
      end

      get("/steal") { stream { |out| out << "mine" and OPEN.last << "secret" } }

      get("/threads") do
        stream { |out| Array.new(4) { |n| Thread.new { 10.times { out << n.to_s * 100 } } }.each(&:join) }
      end

      get("/plain") { "plain" }
    end

    run Streams
  RUBY

  def setup = needs_gems("sinatra")

  def test_a_stream_is_sent
    server = serve(APP)

    assert_equal "0 1 2 ", get(server, "/closed").body
    assert_equal [1000] * 4, get(server, "/threads").body.chars.tally.sort.map(&:last)
  end

  # As in Puma, the response ends with `each`; a later write of the application raises.
  def test_a_stream_that_is_kept_open_raises_when_it_is_written_to_later
    needs_a_sinatra_that_returns
    [["-t", 1], ["-t", 4]].each do |threads|
      server = serve(APP, *threads)
      client = connect(server)
      10.times do
        assert_equal "first", get(server, "/open").body
        assert_equal "Fairlead::FinishedError", client.get("/later").body
        assert_equal "plain", client.get("/plain").body
      end
      assert_equal ["closed"] * 10, wait_for_notes(server, 10)
    end
  end

  def test_nothing_of_it_reaches_another_client
    needs_a_sinatra_that_returns
    server = serve(APP, "-t", 1)
    get(server, "/open")
    cut = connect(server).request("GET", "/steal").rest

    assert_includes cut, "mine"
    refute_includes cut, "secret"
    server.wait_for_output(/Fairlead::FinishedError/)
  end

  private

  # Newer versions call the block of `stream(:keep_open)` repeatedly, until the stream is closed.
  def needs_a_sinatra_that_returns
    version = Gem::Specification.find_by_name("sinatra").version
    skip "Sinatra #{version} does not return from each" if version >= Gem::Version.new("4")
  end
end
