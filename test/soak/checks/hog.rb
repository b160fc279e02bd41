# frozen_string_literal: true

# CPU-bound requests beside waiting ones, so that time slices end all the time; and beside timeouts, exceptions from other
# threads, killed threads, throws, forks and held locks, with and without GC.stress in turns. Every response is correct for
# its request, no thread survives its end, and the server does not crash.
#
#   ruby test/soak/checks/hog.rb 20     for 20 minutes; 10 seconds by default
require_relative "../check"
require "net/http"
require_relative "support/deeds"

MINUTES = ARGV.first&.match?(/\A\d+(\.\d+)?\z/) ? Float(ARGV.shift) : 10 / 60.0
SEED = 1
SHAPE = Bench::Shape.new(workers: 2, threads: 5, connections: 16)

# Seconds with GC.stress, and without.
STRESS = 1
EASE = 2

SCENARIO = Bench::Scenario.new(
  "hog",
  about: "Each request computes, waits, raises, throws or is killed.",
  app: <<~'RUBY',
    require "timeout"
    Wanted = Class.new(RuntimeError)
    LOCK = Mutex.new

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def spin(seconds)
      ending = now + seconds
      nil while now < ending
    end

    # Starts a thread that computes until it is killed, and returns it. Calls the block at its end.
    def computing
      begun = Thread::Queue.new
      thread = Thread.new do
        begun << true
        loop { nil }
      ensure
        yield
      end
      thread.report_on_exception = false
      begun.pop
      spin(rand * 0.01)
      thread
    end

    # Calls the block with this thread, after a while, from another one.
    def later
      request = Thread.current
      Thread.new { sleep(rand * 0.02); yield request }
      loop { nil }
    end

    DEEDS = {
      "compute" => -> { spin(0.05) || "computed" },
      "wait" => -> { 4.times { sleep 0.002; spin(0.0005) } && "waited" },
      "mix" => -> { 3.times { spin(0.001); sleep 0.003 } && "mixed" },
      "timeout" => lambda {
        begin
          Timeout.timeout(0.01 + rand * 0.02) { loop { nil } }
        rescue Timeout::Error
          "out"
        end
      },
      "raise-thread" => lambda {
        thread = computing { nil }
        thread.raise(Wanted)
        begin
          thread.join
        rescue Wanted
          "raised"
        end
      },
      "kill-thread" => lambda {
        ended = false
        thread = computing { ended = true }
        [thread.kill.join.status, ended].join(" ")
      },
      "masked" => lambda {
        order = []
        thread = Thread.new do
          Thread.handle_interrupt(Wanted => :never) do
            order << "masked"
            spin(0.01) until order.size > 1
            spin(0.01)
            order << "still"
          end
          spin(0.01)
          order << "too late"
        rescue Wanted
          order << "raised"
        end
        sleep 0.001 while order.empty?
        thread.raise(Wanted)
        order << "sent"
        thread.join
        order.join(" ")
      },
      "raise-request" => -> { later { |request| request.raise(Wanted) } },
      "kill-request" => -> { later(&:kill) },
      "raise" => -> { spin(0.005) || raise(Wanted) },
      "throw" => -> { catch(:out) { spin(0.01); throw :out, "thrown" } },
      "uncaught" => -> { spin(0.005) || throw(:nowhere) },
      "lock" => -> { LOCK.synchronize { spin(0.002) } || "locked" },
      "fibers" => -> { numbers = Enumerator.new { |to| 3.times { |n| spin(0.002); to << n } }; Array.new(3) { numbers.next }.join },
      "fork" => -> { Process.wait2(fork { spin(0.01); exit!(3) }).last.exitstatus.to_s },
      "threads" => -> { Thread.list.size.to_s },
      "slices" => -> { Fairlead.stats[:workers].sum { |worker| worker[:time_slices] }.to_s },
      "stress" => -> { (GC.stress = true) && "stressed" },
      "ease" => -> { (GC.stress = false) || "eased" }
    }

    run(lambda do |env|
      _, deed, id = env["PATH_INFO"].split("/")
      next [200, {}, ["ready"]] unless deed

      [200, { "content-type" => "text/plain" }, [[DEEDS.fetch(deed).call, id].join(" ").strip]]
    end)
  RUBY
  answer_bytes: 5,
  shapes: [],
  metrics: []
)

EXPECTED = {
  "/compute/ID" => "computed ID", "/wait/ID" => "waited ID", "/mix/ID" => "mixed ID", "/timeout/ID" => "out ID",
  "/raise-thread/ID" => "raised ID", "/kill-thread/ID" => "false true ID", "/masked/ID" => "masked sent still raised ID",
  "/raise-request" => 500, "/kill-request" => :closed, "/raise" => 500, "/throw/ID" => "thrown ID", "/uncaught" => 500,
  "/lock/ID" => "locked ID", "/fibers/ID" => "012 ID", "/fork/ID" => "3 ID"
}.freeze

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def get(running, path) = Net::HTTP.get("127.0.0.1", path, running.port)

# Largest number of threads that a worker reports: repeated until both workers have responded, and until there are at most
# +aim+.
def threads(running, aim: 0)
  ending = now + 10
  loop do
    found = Array.new(20) { Integer(get(running, "/threads"), 10) }.max
    return found if found <= aim || now > ending || aim.zero?

    sleep 0.1
  end
end

# Switches GC.stress on and off, in the worker that takes the request.
def take_turns(running, ending)
  while now < ending
    get(running, "/stress")
    sleep STRESS
    8.times { get(running, "/ease") }
    sleep EASE
  end
  20.times { get(running, "/ease") }
end

Fairlead::Soak::Check.run("hog") do |check|
  check.serve(SCENARIO, SHAPE) do |running|
    before = threads(running)
    deeds = Deeds.new(running.port, EXPECTED, clients: SHAPE.connections, seed: SEED)
    take_turns(running, now + MINUTES * 60)
    counts = deeds.finish

    check.show("requests", counts.values.sum)
    check.at_least("deeds of each kind", counts.values_at(*EXPECTED.keys.map { |path| path[/\A\/[a-z-]+/] }).map(&:to_i).min, 1)
    deeds.wrong.first(10).each { |wrong| warn "  wrong: #{wrong.path}: #{wrong.got}" }
    check.at_most("wrong or lost", deeds.wrong.size, 0)
    log = File.read(running.site.log, encoding: "BINARY")
    check.at_most("crashes", log.scan(/ended unexpectedly|\[BUG\]|Segmentation fault/).size, 0)
    check.at_least("time slices", Integer(get(running, "/slices"), 10), 10) if check.server.name == "fairlead"
    # Timeout keeps one thread.
    check.at_most("threads of a worker (#{before} before)", threads(running, aim: before + 1), before + 1)
  end
end
