# frozen_string_literal: true

require "test_helper"
require "support/fake_server"

class BacklogTest < Minitest::Test
  Backlog = Fairlead::Backlog

  def test_zero_is_the_most
    assert_equal [65_535, 512], [0, 512].map { |value| Backlog.of(value) }
  end

  def test_a_lower_limit_of_the_system_is_a_shortage
    limits = { 0 => nil, 512 => nil, 4096 => nil, 4097 => 4096 }

    assert_equal(limits, limits.to_h { |wanted, _| [wanted, Backlog.shortage(wanted, limit: 4096)] })
    assert_nil Backlog.shortage(65_535, limit: nil)
  end

  def test_the_log_says_so_when_listeners_are_opened
    limit = Backlog.limit
    skip "the system allows every number" if limit >= Backlog::MOST
    texts = ["tcp://127.0.0.1:0", "tcp://127.0.0.1:0?backlog=#{limit + 1}"].map { |address| log_of(address) }

    assert_empty texts.first
    assert_match(/backlog is #{limit + 1}, but the system lets only #{limit} connections wait/, texts.last)
  end

  def log_of(address)
    layer = Fairlead::Configuration::Layer.from({ bind: address }, origin: "test")
    log = Fairlead::Test::CollectedLog.new
    Fairlead::Service.new(Fairlead::Configuration.new([layer]), log: log).open.close
    log.text
  end
end
