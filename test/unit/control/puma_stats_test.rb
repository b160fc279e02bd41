# frozen_string_literal: true

require "test_helper"
require "time"
require "support/fake_server"

class PumaStatsTest < Minitest::Test
  Control = Fairlead::Control

  COUNTS = { queued: 3, threads: 4, busy_threads: 2, requests: 70, connections: 9 }.freeze
  POOL = { backlog: 3, running: 4, pool_capacity: 3, busy_threads: 2, io_threads: 0, backlog_max: 3, max_threads: 5, requests_count: 70,
           reactor_max: 7 }.freeze

  def stats(server, counts)
    peaks = Control::Peaks.new(-> { counts })
    Control::PumaStats.new(server, max_threads: 5, peaks: peaks.take, counts: counts).to_h
  end

  def test_a_single_process_has_the_pool_at_the_top
    stats = stats(Fairlead::Test::FakeServer.new, { engines: [COUNTS] })

    assert_equal "2026-01-02T03:04:05Z", stats[:started_at]
    assert_equal POOL, stats.except(:started_at, :versions)
    assert_equal %i[started_at backlog running pool_capacity busy_threads io_threads backlog_max max_threads requests_count reactor_max versions],
                 stats.keys
    assert_equal({ engine: "ruby", version: RUBY_VERSION, patchlevel: RUBY_PATCHLEVEL }, stats[:versions][:ruby])
  end

  def test_workers_have_a_pool_each
    server = Fairlead::Test::FakeServer.new(workers: 2, generation: 3)
    server.change(children: [server.child(0, generation: 3), server.child(1, generation: 2), server.child(2, generation: 3, booted: false)])
    stats = stats(server, { engines: [], workers: [{ slot: 0, **COUNTS }, { slot: 1, **COUNTS }] })

    assert_equal({ started_at: "2026-01-02T03:04:05Z", workers: 3, phase: 2, booted_workers: 2, old_workers: 1 },
                 stats.except(:worker_status, :versions))
    assert_equal [[0, 200, 2, true], [1, 201, 1, true], [2, 202, 2, false]],
                 (stats[:worker_status].map { |worker| worker.values_at(:index, :pid, :phase, :booted) })
    assert_equal [POOL, POOL, {}], (stats[:worker_status].map { |worker| worker[:last_status] })
  end

  def test_requests_in_the_waiting_room_are_dealt_out_to_the_workers_that_serve
    server = Fairlead::Test::FakeServer.new(workers: 3)
    workers = [{ slot: 0, **COUNTS }, { slot: 1, **COUNTS, threads: 0, queued: 0 }, { slot: 2, **COUNTS }]
    pools = stats(server, { engines: [], room: { waiting: 5 }, workers: workers })[:worker_status].map { |worker| worker[:last_status] }

    assert_equal [6, 0, 5], (pools.map { |pool| pool[:backlog] })
    assert_equal [6, 0, 5], (pools.map { |pool| pool[:backlog_max] })
  end

  def test_the_last_sign_of_life_has_a_time
    server = Fairlead::Test::FakeServer.new(workers: 1)
    last = Time.parse(stats(server, { engines: [], workers: [] })[:worker_status].first[:last_checkin])

    assert_in_delta Time.now.to_f, last.to_f, 5
  end

  def test_the_highest_numbers_begin_anew_when_they_are_read
    counts = { engines: [COUNTS] }
    peaks = Control::Peaks.new(-> { counts })
    peaks.look
    counts = { engines: [COUNTS.merge(queued: 1, connections: 2)] }

    assert_equal({ backlog_max: 3, reactor_max: 7 }, peaks.take[:engine])
    assert_equal({ backlog_max: 1, reactor_max: 0 }, peaks.take[:engine])
  end
end
