# frozen_string_literal: true

require "test_helper"

class PumaStatsTest < Minitest::Test
  PumaStats = Fairlead::Control::PumaStats

  COUNTS = { queued: 3, threads: 4, busy_threads: 2, requests: 70, connections: 9 }.freeze
  POOL = { backlog: 3, running: 4, pool_capacity: 3, busy_threads: 2, io_threads: 0, backlog_max: 0, max_threads: 5, requests_count: 70,
           reactor_max: 0 }.freeze

  def test_a_single_process_has_the_pool_at_the_top
    stats = PumaStats.of_engine({ engines: [COUNTS] }, max_threads: 5)

    assert_equal POOL, stats.except(:started_at, :versions)
    assert_equal %i[started_at backlog running pool_capacity busy_threads io_threads backlog_max max_threads requests_count reactor_max versions],
                 stats.keys
    assert_equal({ engine: "ruby", version: RUBY_VERSION, patchlevel: RUBY_PATCHLEVEL }, stats[:versions][:ruby])
  end

  def test_workers_have_a_pool_each
    stats = PumaStats.of_workers({ engines: [], workers: [{ slot: 0, **COUNTS }, { slot: 1, **COUNTS }] }, max_threads: 5)

    assert_equal({ started_at: nil, workers: 2, phase: 0, booted_workers: 2, old_workers: 0 }, stats.except(:worker_status, :versions))
    assert_equal [[0, POOL], [1, POOL]], (stats[:worker_status].map { |worker| worker.values_at(:index, :last_status) })
  end

  def test_requests_in_the_waiting_room_are_dealt_out_to_the_workers_that_serve
    workers = [{ slot: 0, **COUNTS }, { slot: 1, **COUNTS, threads: 0, queued: 0 }, { slot: 2, **COUNTS }]
    stats = PumaStats.of_workers({ engines: [], room: { waiting: 5 }, workers: workers }, max_threads: 5)

    assert_equal [6, 0, 5], (stats[:worker_status].map { |worker| worker[:last_status][:backlog] })
  end
end
