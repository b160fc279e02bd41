# frozen_string_literal: true

module Bench
  # What one run of the load tool against one server found.
  #
  # round: which one, from 0. rate: answers per second. errors: what went wrong, by kind, with counts.
  # latency: percentile => milliseconds, as the clients saw it; corrected: as clients would have that do not wait for one
  # answer before they ask again (nil when the tool does not say).
  # per_connection: requests answered on each connection, nil when the tool does not say. bytes: received.
  # cpu_us: the server's CPU time per request in microseconds. memory_mib: its memory (PSS) at the end. For a broadcast read
  # delivery for request. Of idle sockets there is no rate: socket_kib is the memory of one, opening the seconds it took to open all.
  # Of starts neither: starts_ms has the milliseconds of each. Beside downloads, short_rate and short_p99 are of another load of
  # short requests, and beside_short is the rate of the downloads meanwhile. tls: what our tool says of TLS
  # (crates/load/src/main.rs), http2: what it says of HTTP/2. beside: the Measurement of the other kind of clients that were there.
  Measurement = Struct.new(:round, :rate, :requests, :seconds, :errors, :latency, :corrected, :per_connection, :bytes,
                           :cpu_us, :memory_mib, :socket_kib, :opening, :tls, :http2, :starts_ms, :short_rate, :short_p99, :beside_short, :beside,
                           keyword_init: true) do
    def self.from_json(hash)
      curves = %w[latency corrected].to_h { |name| [name.to_sym, hash[name]&.transform_keys(&:to_f)] }
      new(**hash.transform_keys(&:to_sym), **curves, beside: hash["beside"] && from_json(hash["beside"]))
    end

    def as_json
      to_h.merge(beside: beside&.as_json).compact
    end

    # nil when no request was answered, and of figures that were taken before the load tool knew this percentile.
    def percentile(wanted)
      latency && latency[wanted.to_f]
    end

    def p95
      percentile(95)
    end

    def p99
      percentile(99)
    end

    # The rate of the other kind of clients.
    def beside_rate
      beside&.rate
    end

    def corrected_percentile(wanted)
      corrected&.fetch(wanted.to_f)
    end

    # What a plot shows: the corrected latencies where there are any.
    def curve
      corrected || latency
    end

    # Requests of the least served connection over those of the most served one; 1 is fair, 0 means somebody starved.
    def least_over_most
      return unless per_connection && per_connection.max.to_i.positive?

      per_connection.min.fdiv(per_connection.max)
    end

    # What each connection of a class of them got on average, in equal shares of all; classes are those of the list of streams.
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

    def start_ms
      starts_ms && Cell.median(starts_ms)
    end

    # Jain's fairness index over the connections: 1 when all got the same, 1/n when one got everything.
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
