# frozen_string_literal: true

require "test_helper"

class BrokerAddressTest < Minitest::Test
  # The part that must not be shown.
  SECRET = "s3cr"

  # URL => its name.
  NAMES = {
    "redis://127.0.0.1" => "redis://127.0.0.1",
    "redis://user:#{SECRET}@10.0.0.5:6379/2" => "redis://10.0.0.5:6379",
    "rediss://:#{SECRET}%40%2F@[::1]:6380/2?password=#{SECRET}" => "rediss://[::1]:6380",
    "redis://#{SECRET}@host" => "redis://host",
    "redis://host##{SECRET}" => "redis://host",
    "unix:///run/redis.sock" => "unix:///run/redis.sock",
    "unix://user:#{SECRET}@/run/redis.sock?db=2&password=#{SECRET}" => "unix:///run/redis.sock"
  }.freeze

  INVALID = [
    "redis://:p@#{SECRET}@host", "redis://:#{SECRET}/x@host", "redis://:12/#{SECRET}@host", "redis://:12?#{SECRET}@host",
    "redis://:12##{SECRET}@host", "redis://us er:#{SECRET}@host", "redis:#{SECRET}@host", "http://:#{SECRET}@host", "#{SECRET}@host", "", nil, 6379
  ].freeze

  def test_a_name_has_no_password
    NAMES.each { |url, name| assert_equal name, address(url).name, url }
  end

  def test_an_error_has_no_password_and_says_what_to_do
    INVALID.each do |url|
      error = assert_raises(ArgumentError, url.inspect) { address(url) }
      assert_match(/begin with redis:|is a String|percent-encoded/, error.message)
      refute_includes error.full_message(highlight: false).lines.grep_v(/_test\.rb/).join, SECRET, url.inspect
      assert_nil error.cause
    end
  end

  private

  def address(url) = Fairlead::PubSub::Broker::Address.new(url, "a Redis server", %w[redis rediss unix])
end
