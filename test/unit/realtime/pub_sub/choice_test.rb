# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

# Fairlead::PubSub.for, and the gems of the brokers.
class PubSubChoiceTest < Minitest::Test
  # URL => its class, and the gem.
  GEMS = {
    "redis://h" => %w[Redis redis], "unix:///s" => %w[Redis redis], "nats://h" => %w[NATS nats-pure], "postgres://h" => %w[Postgres pg]
  }.freeze

  # Runs code in a Ruby that cannot load the gems.
  WITHOUT_GEMS = <<~RUBY
    Object.prepend(Module.new do
      def require(name) = %w[redis nats/client pg].include?(name) ? raise(LoadError, "cannot load such file -- \#{name}") : super
    end)
    require "fairlead"
    ARGV.each do |url|
      Fairlead::PubSub.for(url)
    rescue LoadError => e
      puts e.message
    end
  RUBY

  def test_a_missing_gem_is_named
    output, status = Open3.capture2e(RbConfig.ruby, "-I", File.join(ROOT, "lib"), "-e", WITHOUT_GEMS, "--", *GEMS.keys)

    assert_predicate status, :success?, output
    expected = GEMS.values.map { |type, gem| "Fairlead::PubSub::#{type} needs the gem #{gem}: add it to the Gemfile" }
    assert_equal expected, output.lines(chomp: true)
  end

  def test_a_url_of_no_broker_is_refused_without_its_password
    [nil, "", "news", "http://u:secret@h", "redis", 5432, "nats", "amqp://u:secret@h"].each do |url|
      error = assert_raises(ArgumentError, url.inspect) { Fairlead::PubSub.for(url) }
      assert_match(/\Athe URL of a broker must begin with redis:, .*nats:, .*postgresql:\z/, error.message)
    end
  end

  def test_without_a_broker_there_are_no_counts
    assert_empty Fairlead::PubSub.statistics
  end
end
