# frozen_string_literal: true

module Bench
  # Results of one run of the load tool against one server.
  #
  # round: number of the round, from 0. rate: responses per second. errors: counts by kind. bytes: received.
  # latency: percentile => milliseconds, as the clients saw it.
  # corrected: the same for clients that do not wait for the previous response (nil if the tool does not report it).
  # per_connection: number of responses on each connection (nil if the tool does not report it).
  # cpu_us: the server's CPU time per request in microseconds. memory_mib: its memory (PSS) at the end.
  # tls, http2: our tool's results for TLS and HTTP/2 (crates/load/src/main.rs).
  # socket_kib: for idle sockets, which have no rate: the memory of one. opening: the seconds for opening all.
  # starts_ms: for starts, which have no rate either: the milliseconds of each.
  # short_rate, short_p99: for downloads, the results of another load of short requests beside them.
  # beside_short: the rate of the downloads in that time.
  # beside: the Measurement of the other kind of clients.
  # pss: number of requests => MiB by role (Drive::Memory).
  # growth: operation => number of things => value (Drive::Growth).
  # good, refused: for overload, our tool's results for good responses and for others. capacity: requests per second that the server can
  # do. asked: the number of requests, if it is fixed. stall: the results after a stall (Drive::Stall).
  #
  # For a broadcast, "request" means delivery.
  Measurement = Struct.new(:round, :rate, :requests, :seconds, :errors, :latency, :corrected, :per_connection, :bytes,
                           :cpu_us, :memory_mib, :socket_kib, :opening, :tls, :http2, :starts_ms, :short_rate, :short_p99, :beside_short, :beside,
                           :good, :refused, :capacity, :asked, :stall, :pss, :growth,
                           keyword_init: true) do
    def self.from_json(hash)
      curves = %w[latency corrected].to_h { |name| [name.to_sym, hash[name]&.transform_keys(&:to_f)] }
      curves[:pss] = hash["pss"]&.transform_keys(&:to_i)
      curves[:growth] = hash["growth"]&.transform_values { |values| values.transform_keys(&:to_i) }
      new(**hash.transform_keys(&:to_sym), **curves, beside: hash["beside"] && from_json(hash["beside"]))
    end

    def as_json
      to_h.merge(beside: beside&.as_json).compact
    end

    # Its memory in MiB after so many requests.
    def pss_after(requests, role = "total")
      pss&.dig(requests, role)
    end

    # nil without responses, and in results from before the load tool had this percentile.
    def percentile(wanted)
      latency && latency[wanted.to_f]
    end

    def p95
      percentile(95)
    end

    def p99
      percentile(99)
    end

    def longest
      percentile(100)
    end

    # The rate of the other kind of clients.
    def beside_rate
      beside&.rate
    end

    def corrected_percentile(wanted)
      corrected&.fetch(wanted.to_f)
    end

    # Latencies for a plot: the corrected ones, if there are any.
    def curve
      corrected || latency
    end

    # Requests of the least served connection, divided by requests of the most served one; 1 is fair, 0 means
    # starvation.
    def least_over_most
      return unless per_connection && per_connection.max.to_i.positive?

      per_connection.min.fdiv(per_connection.max)
    end

    # Average of the connections of a class, in equal shares of all; the classes are the items of the list of streams.
    def share_of_class(index)
      http2 && http2["classes"].dig(index, "share")
    end

    # A percentile of the latencies of a class of connections, in milliseconds.
    def percentile_of_class(index, wanted)
      http2 && http2["classes"].dig(index, "latency_ms", "p#{wanted}")
    end

    # Jain's fairness index over the streams of the least even connection.
    def stream_jain
      http2&.dig("fairness", "jain")
    end

    # Good responses in time per second.
    def useful_rate
      good && good["in_time_per_second"]
    end

    def useful_share
      useful_rate / capacity if good && capacity
    end

    def good_p50
      good&.dig("latency_ms", "p50")
    end

    def good_p99
      good&.dig("latency_ms", "p99")
    end

    def refused_count
      refused && refused["answered"]
    end

    def refused_p99
      refused&.dig("latency_ms", "p99")
    end

    # Requests without a response.
    def failed_count
      error_count - errors.fetch("status", 0)
    end

    # Requests without a good response, of a fixed number.
    def lost
      asked && (asked - good["answered"])
    end

    # Good responses that came too late to be useful.
    def late
      good && (good["answered"] - good["in_time"])
    end

    def start_ms
      starts_ms && Cell.median(starts_ms)
    end

    # Jain's fairness index over the connections: 1 if all got the same, 1/n if one got everything.
    def jain
      return unless per_connection&.any?(&:positive?)

      (per_connection.sum**2).fdiv(per_connection.size * per_connection.sum { |count| count**2 })
    end

    def megabytes_per_second
      bytes && bytes / seconds / 1e6
    end

    def error_count
      errors.values.sum
    end
  end
end
