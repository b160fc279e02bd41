# frozen_string_literal: true

module Bench
  # The configuration of a server and the number of its clients: `workers` processes with `threads` threads each,
  # `connections` kept connections, and the `mix` of requests if the scenario has several. One worker means one process:
  # servers that can serve without a supervisor do so.
  Shape = Struct.new(:workers, :threads, :connections, :mix, keyword_init: true) do
    # Parses "WORKERSxTHREADS", "WORKERSxTHREADS:CONNECTIONS" or "WORKERSxTHREADS:CONNECTIONS MIX"; `connections`
    # replaces the number in the text, or the default 10.
    def self.parse(text, connections: nil)
      numbers, mix = text.split(" ", 2)
      workers, threads, own = numbers.split(/[x:]/).map { |number| Integer(number, 10) }
      new(workers: workers, threads: threads, connections: connections || own || 10, mix: mix)
    end

    # Number of requests that can be inside the app at once.
    def concurrency
      workers * threads
    end

    def single?
      workers == 1
    end

    def clients
      connections == 1 ? "1 connection" : "#{connections} connections"
    end

    def to_s
      ["-w #{workers} -t #{threads}", clients, mix].compact.join(", ")
    end
  end
end
