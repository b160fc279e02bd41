# frozen_string_literal: true

require "json"

# Tracks the visitors of all workers, without a store. Each worker reports its visitors to all workers: soon after a change,
# and every second anyway. If a worker stops reporting (because it was killed), it is removed with its visitors; a new worker
# gets a report at once. A report is complete, so a lost one does no lasting harm.
class Presence
  CHANNEL = "chat/presence"
  EVERY = 1.0  # seconds between two reports of a worker
  GONE = 3.5   # seconds after which a silent worker is removed
  SOON = 0.1   # seconds in which changes are collected: a hundred visitors at once cause one report

  Report = Struct.new(:rooms, :heard_at)

  # Calls the block with a room and its visitors after each change, in every worker.
  def initialize(&changed)
    @changed = changed
    @lock = Mutex.new # protects the following variables; nothing is published while it is held
    @here = {}        # room => { visitor => true }, in this worker; a visitor has an id and a card to show
    @reports = {}     # worker => Report, of all workers, this one included
    @report_due = false
    Fairlead.subscribe(CHANNEL) { |_channel, report| hear(JSON.parse(report)) }
    Fairlead.run_every(EVERY) { tick }
  end

  def enter(room, visitor)
    @lock.synchronize { (@here[room] ||= {})[visitor] = true }
    report_soon
  end

  def leave(room, visitor)
    @lock.synchronize do
      visitors = @here.fetch(room, {})
      visitors.delete(visitor)
      @here.delete(room) if visitors.empty?
    end
    report_soon
  end

  # Visitors of a room, each once: a visitor who has just moved to another worker can be in two reports, and the newer one
  # counts.
  def people(room)
    reports = @lock.synchronize { @reports.sort_by { |_worker, report| -report.heard_at } }
    found = reports.flat_map do |worker, report|
      (report.rooms[room] || {}).map { |id, card| { "id" => id, "worker" => worker, **card } }
    end
    found.uniq { |person| person["id"] }.sort_by { |person| person.values_at("name", "id") }
  end

  private

  def report_soon
    first = @lock.synchronize { !@report_due && (@report_due = true) }
    Fairlead.run_after(SOON) { report } if first
  end

  def report
    rooms = @lock.synchronize do
      @report_due = false
      @here.transform_values { |visitors| visitors.keys.to_h { |visitor| [visitor.id, visitor.card] } }
    end
    Fairlead.publish(CHANNEL, JSON.generate(worker: Process.pid, rooms: rooms))
  end

  def hear(report)
    worker, rooms = report.values_at("worker", "rooms")
    before = @lock.synchronize do
      known = @reports[worker]
      @reports[worker] = Report.new(rooms, now)
      known
    end
    report_soon unless before
    show_changes(before ? before.rooms : {}, rooms)
  end

  def tick
    report
    gone = @lock.synchronize do
      silent = @reports.select { |_worker, report| report.heard_at < now - GONE }
      silent.each_key { |worker| @reports.delete(worker) }
    end
    gone.each_value { |report| show_changes(report.rooms, {}) }
  end

  def show_changes(before, after)
    (before.keys | after.keys).each { |room| @changed.call(room, people(room)) if before[room] != after[room] }
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
