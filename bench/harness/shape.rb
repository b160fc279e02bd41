# frozen_string_literal: true

module Bench
  # How a server is set up and how many clients it meets: `workers` processes of `threads` threads, `connections`
  # connections that are kept, and what they ask for if the scenario has several `mix`es. One worker means one process:
  # servers that can serve without a supervisor do so.
  Shape = Struct.new(:workers, :threads, :connections, :mix, keyword_init: true) do
    # "WORKERSxTHREADS", "WORKERSxTHREADS:CONNECTIONS" or "WORKERSxTHREADS:CONNECTIONS MIX"; `connections` replaces what the
    # text says, or the usual 10.
    def self.parse(text, connections: nil)
      numbers, mix = text.split(" ", 2)
      workers, threads, own = numbers.split(/[x:]/).map { |number| Integer(number, 10) }
      new(workers: workers, threads: threads, connections: connections || own || 10, mix: mix)
    end

    # Requests that can be inside the app at once.
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
