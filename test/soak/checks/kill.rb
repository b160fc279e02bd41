# frozen_string_literal: true

# Workers that die and servers that get TERM, under load. After `kill -9` of a worker only the requests in that worker are
# lost, and another worker takes its place; after TERM no request that had reached the server is lost. When workers are
# killed repeatedly, each request gets one response or its connection is closed, and the application runs none twice.
# FAIRLEAD_SOAK_REQUESTS sets the number of requests.
require_relative "../check"
require_relative "support/clients"
require_relative "support/keeping"

ROUNDS = 5
CLIENTS = 16
SHAPE = Bench::Shape.new(workers: 2, threads: 2, connections: CLIENTS)

# Number of requests for the repeated kills.
REQUESTS = Integer(ENV.fetch("FAIRLEAD_SOAK_REQUESTS", "20000"), 10)
CROWD = Bench::Shape.new(workers: 4, threads: 5, connections: 200)
KILL_EVERY = 2

# Before it works on a request, the app writes its number: one line, one write, in any process.
SCENARIO = Bench::Scenario.new(
  "kill",
  about: "Every request takes 20 ms and is noted when it begins.",
  app: <<~RUBY,
    BEGUN = File.open(File.expand_path("begun", __dir__), File::WRONLY | File::APPEND | File::CREAT)
    run(lambda do |env|
      BEGUN.syswrite(env["PATH_INFO"].delete_prefix("/") + "\\n")
      sleep 0.02
      [200, { "content-type" => "text/plain" }, ["done\\n"]]
    end)
  RUBY
  answer_bytes: 5,
  shapes: [],
  metrics: []
)

def begun(site)
  File.readlines(File.join(site.directory, "begun"), chomp: true).filter_map { |id| Integer(id, exception: false) }
end

def eventually(seconds)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  sleep 0.02 until (done = yield) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
  done
end

# Serves, lets clients run for a second, yields, and returns the clients' requests and the ids of the begun ones.
def with_clients(check)
  Bench::Site.open(SCENARIO) do |site|
    Bench::Running.start(check.server, site, SHAPE) do |running|
      clients = Clients.new(running.port, CLIENTS)
      sleep 1
      yield running, clients
      return [clients.finish, begun(site)]
    end
  end
end

def kill_a_worker(check)
  victim = nil
  replaced = nil
  requests, began = with_clients(check) do |running, _clients|
    victim = running.group.workers.min
    Process.kill(:KILL, victim)
    replaced = eventually(5) { !running.group.pids.include?(victim) && running.group.workers.size == SHAPE.workers }
    sleep 2
  end
  failed = requests.reject(&:answered?)
  check.at_least("kill -9 of a worker: replaced within 5 s", replaced ? 1 : 0, 1)
  check.at_most("kill -9: lost while the app ran them (threads of the worker)", (failed.map(&:id) & began).size, SHAPE.threads)
  check.at_most("kill -9: requests without a response (one per client at most)", failed.size, CLIENTS)
  check.at_most("kill -9: connections refused", failed.count(&:refused?), 0)
  check.at_least("kill -9: answered after it", requests.last(20).count(&:answered?), 20)
end

def terminate(check)
  Array.new(ROUNDS) do
    ended = nil
    requests, began = with_clients(check) do |running, _clients|
      running.signal(:TERM)
      ended = running.wait_for_end(10)
    end
    failed = requests.reject { |request| request.answered? || request.refused? }
    { ended: ended, answered: requests.count(&:answered?), lost: (failed.map(&:id) & began).size,
      **never_begun(failed.reject { |request| began.include?(request.id) }) }
  end
end

# Requests that the app never began. A request that failed at once crossed the closing of its connection, which no server can
# prevent. One that waited was in the server or, as the first on its connection, in the backlog of a listener that is no
# longer accepting.
def never_begun(requests)
  waited, crossed = requests.partition { |request| request.seconds > 0.01 }
  unaccepted, waiting = waited.partition(&:fresh)
  { crossed: crossed.size, unaccepted: unaccepted.size, waiting: waiting.size }
end

def judge_termination(check)
  found = terminate(check)
  total = ->(name) { found.sum { |round| round[name] } }
  check.at_least("TERM, #{ROUNDS} times: ended within 10 s", found.count { |round| round[:ended] }, ROUNDS)
  check.show("TERM: requests with a response", total[:answered])
  check.at_most("TERM: begun by the app, without a response", total[:lost], 0)
  check.at_most("TERM: waited in the server, without a response", total[:waiting], 0)
  check.at_most("TERM: connected and waited, without a response", total[:unaccepted], 0)
  check.show("TERM: sent as the server closed the connection", total[:crossed])
end

# Kills a worker every two seconds until the clients have made their requests. Returns the clients' report, the number of
# kills, the requests that the application has run more than once, and the number of requests that it has run.
def kill_again_and_again(check)
  Bench::Site.open(Bench::Scenario.new("kills", about: "Random times.", app: Keeping::APP, answer_bytes: 0, shapes: [], metrics: [])) do |site|
    Bench::Running.start(check.server, site, CROWD) do |running|
      killed = 0
      keeping = Keeping.new(running.port, connections: CROWD.connections, count: REQUESTS)
      until eventually(KILL_EVERY) { keeping.over? }
        Process.kill(:KILL, running.group.workers.sample)
        killed += 1
      end
      return [keeping.finish, killed, *Keeping.repeated(File.join(site.directory, "ran"))]
    end
  end
end

def judge_kills(check)
  found, killed, repeated, ran = kill_again_and_again(check)
  closed = found["closed_busy"].to_i
  name = "kill -9 every #{KILL_EVERY} s, #{killed} times"
  check.show("#{name}: requests", found["requests"])
  check.show("#{name}: run by the application", ran)
  check.show("#{name}: connections closed while they waited", closed)
  check.at_least("#{name}: answered, or closed", found["answered"] + found["unanswered"].size, found["requests"])
  check.at_most("#{name}: without a response, among the closed ones", found["unanswered"].size, 3 * closed)
  check.at_most("#{name}: run twice", repeated.size, 0)
  check.at_most("#{name}: another's or an incomplete response", found["wrong"].size, 0)
  check.at_most("#{name}: refused connections, late responses, announced ends", %w[refused late announced].sum { |what| found[what].to_i }, 0)
  warn found["wrong"].inspect unless found["wrong"].empty?
end

Fairlead::Soak::Check.run("kill") do |check|
  kill_a_worker(check)
  judge_termination(check)
  judge_kills(check)
end
