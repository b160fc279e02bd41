# frozen_string_literal: true

require "test_helper"
require "support/crowd"

# `fair_by`: a client gets its share of the threads' time, for any number of connections and any duration of its requests.
# The test compares shares of one run, never times.
class FairByTest < Minitest::Test
  include Fairlead::Test::Servers

  Crowd = Fairlead::Test::Crowd

  # Least share of each single client, as a part of an equal share.
  SHARE = 0.8

  def test_a_crowd_of_one_address_leaves_the_others_their_share
    assert_fair Crowd.new(serve(Crowd::APP, "-t", 3, "--fair-by", "ip"))
  end

  def test_a_crowd_of_one_address_whose_requests_take_ten_times_as_long_leaves_the_others_their_share
    assert_fair Crowd.new(serve(Crowd::APP, "-t", 3, "--fair-by", "ip"), crowd: { work: 0.1 }, single: { work: 0.01 })
  end

  def test_without_it_the_crowd_takes_nearly_everything
    assert_operator Crowd.new(serve(Crowd::APP, "-t", 3)).shares(0).max, :<, 0.5
  end

  def test_it_holds_over_several_workers
    assert_fair Crowd.new(serve(Crowd::APP, "-w", 2, "-t", 2, "--fair-by", "ip"))
  end

  def test_it_holds_over_several_workers_with_requests_that_take_ten_times_as_long
    assert_fair Crowd.new(serve(Crowd::APP, "-w", 2, "-t", 2, "--fair-by", "ip"), crowd: { work: 0.1 }, single: { work: 0.01 })
  end

  def test_clients_are_told_apart_by_a_field
    fields = ->(number) { { "X-API-Key" => "key #{number}" } }

    assert_fair Crowd.new(serve(Crowd::APP, "-t", 3, "--fair-by", "x-api-key"), address: ->(_) { "127.0.0.1" }, fields: fields)
  end

  def test_requests_without_the_field_count_by_address
    assert_fair Crowd.new(serve(Crowd::APP, "-t", 3, "--fair-by", "x-api-key"))
  end

  def test_clients_behind_a_trusted_proxy_are_told_apart
    server = serve(Crowd::APP, "-t", 3, "--fair-by", "ip", *forwarding_by("127.0.0.0/8"))
    # Any client could have sent the text before the address that the proxy has appended.
    fields = ->(number) { { "X-Forwarded-For" => "198.51.100.#{rand(256)}, 192.0.2.#{number}" } }

    assert_fair Crowd.new(server, address: ->(_) { "127.0.0.1" }, fields: fields)
  end

  def test_whom_nobody_trusts_cannot_pretend_to_be_many
    server = serve(Crowd::APP, "-t", 3, "--fair-by", "ip", *forwarding_by("203.0.113.1"))
    fields = ->(_) { { "X-Forwarded-For" => "192.0.2.#{rand(256)}" } }

    assert_fair Crowd.new(server, fields: fields)
  end

  def test_pipelining_gains_nothing
    assert_fair Crowd.new(serve(Crowd::APP, "-t", 3, "--fair-by", "ip"), crowd: { connections: 20, pipelined: 10 })
  end

  private

  def forwarding_by(proxy) = ["--trusted-proxies", proxy]

  def assert_fair(crowd)
    shares = crowd.shares(SHARE)

    assert_operator shares.min, :>=, SHARE, shares.inspect
  end
end
