# frozen_string_literal: true

require "test_helper"
require "support/fake_server"

class HealthTest < Minitest::Test
  Control = Fairlead::Control

  def setup
    @server = Fairlead::Test::FakeServer.new
  end

  def ask(path)
    health = Control::Health.new(@server, @pulse || Control::Pulse.new(@server))
    response = health.call(Control::Request.new("GET #{path} HTTP/1.1"))
    [response.status, response.body[/"status":"(\w+)"/, 1]]
  end

  def test_it_is_ready_from_the_end_of_the_start_until_the_drain
    verdicts = %i[starting ready restarting draining].map do |state|
      @server.change(state: state)
      ask("/ready")
    end

    assert_equal [[503, "starting"], [200, "ready"], [200, "restarting"], [503, "draining"]], verdicts
  end

  def test_it_is_not_ready_without_a_worker_that_serves
    @server = Fairlead::Test::FakeServer.new(workers: 2)

    assert_equal 200, ask("/ready").first
    @server.change(children: [@server.child(0, booted: false), @server.child(1, ending: true)])

    assert_equal 503, ask("/ready").first
    @server.change(children: [])

    assert_equal 503, ask("/ready").first
  end

  def test_it_lives_in_every_state
    states = %i[starting ready restarting draining].map do |state|
      @server.change(state: state)
      ask("/live")
    end

    assert_equal [[200, "live"]] * 4, states
  end

  def test_a_main_loop_that_hangs_is_not_alive
    @pulse = Control::Pulse.new(@server)
    @server.turns = false
    clock = 0.0
    @pulse.define_singleton_method(:now) { clock }
    @pulse.check
    clock += Control::Health::SILENCE - 1

    assert_equal [200, "live"], ask("/live")
    clock += 2

    assert_equal [503, "hung"], ask("/live")
    @server.turn

    assert_equal [200, "live"], ask("/live")
  end

  def test_while_the_application_is_loaded_the_main_loop_need_not_turn
    @pulse = Control::Pulse.new(@server)
    @pulse.define_singleton_method(:silent_for) { 1000 }
    @server.change(state: :starting)

    assert_equal [200, "live"], ask("/live")
  end

  def test_there_is_nothing_else
    assert_equal 404, ask("/stats").first
  end
end
