# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/http_client"
require "support/rack_apps"

# Responses that are larger than the server's buffers for a client: every byte arrives, and a thread that waits for a slow
# client does not delay others.
class LargeAnswerTest < Minitest::Test
  include Fairlead::Test::HttpServing

  # Path => a body of so many bytes (the query).
  APP = <<~'RUBY'
    size = Integer(env["QUERY_STRING"].empty? ? "2" : env["QUERY_STRING"])
    text = ("0123456789abcdef" * (size / 16 + 1))[0, size].freeze
    parts = text.scan(/.{1,70000}/m)
    body = case env["PATH_INFO"]
           when "/one" then [text]
           when "/many" then parts
           when "/yielded" then Enumerator.new { |out| parts.each { |part| out << part } }
           when "/whole" then Enumerator.new { |out| out << text }
           when "/streamed" then ->(stream) { parts.each { |part| stream << part } and stream.close }
           when "/tiny" then Enumerator.new { |out| text.each_char { |part| out << part } }
           else ["ok"]
           end
    [200, {}, body]
  RUBY

  PATHS = %w[/one /many /yielded /whole /streamed].freeze
  TIGHT = %w[--response-disk-bytes 0 --response-memory-bytes 4096].freeze

  def test_50_megabytes_to_a_client_that_does_not_read_hold_no_thread
    server = serve(unlinted(APP), "-t", "1")
    slow = connect(server).request("GET", "/one?50000000")

    slow.read_through("\r\n\r\n")
    5.times { assert_equal "ok", get(server).body }

    assert_equal expected(50_000_000), digest(slow.read(50_000_000))
  end

  def test_every_size_of_every_kind_arrives_whole
    server = serve(unlinted(APP))
    client = connect(server)

    [1, 4095, 4096, 65_535, 65_536, 70_001, 262_145, 3_000_000].each do |size|
      PATHS.each { |path| assert_equal expected(size), digest(client.get("#{path}?#{size}").body), "#{path} #{size}" }
    end
  end

  def test_the_same_where_next_to_nothing_may_wait_in_the_server
    server = serve(unlinted(APP), *TIGHT)
    client = connect(server)

    [1, 4095, 4097, 65_535, 70_001, 3_000_000].each do |size|
      PATHS.each { |path| assert_equal expected(size), digest(client.get("#{path}?#{size}").body), "#{path} #{size}" }
    end
    assert_equal expected(5000), digest(client.get("/tiny?5000").body)
  end

  def test_a_thread_that_has_to_wait_for_its_client_lets_other_threads_run
    server = serve(unlinted(APP), "-t", "2", *TIGHT)

    PATHS.each do |path|
      slow = connect(server).request("GET", "#{path}?20000000")
      slow.read_through("\r\n\r\n")
      5.times { assert_equal "ok", get(server).body, "while #{path} waits" }
      slow.reset
    end
  end

  def test_a_thread_that_waits_for_its_client_can_be_interrupted
    server = serve(unlinted("limit = 0.2\n#{APP.sub("[200, {}, body]", <<~RUBY)}", setup: 'require "timeout"'), "-t", "1", *TIGHT)
      waiting = Enumerator.new { |out| Timeout.timeout(limit) { body.each { |part| out << part } } }
      [200, {}, env["PATH_INFO"] == "/many" ? waiting : body]
    RUBY
    slow = connect(server).request("GET", "/many?20000000")
    slow.read_through("\r\n\r\n")

    assert_equal "ok", get(server).body
    assert_logged("Timeout::Error", server)
  end

  private

  def expected(size) = digest(("0123456789abcdef" * ((size / 16) + 1))[0, size])

  def digest(text) = Digest::SHA256.hexdigest(text)
end
