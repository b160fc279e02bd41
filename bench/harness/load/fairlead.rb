# frozen_string_literal: true

require "json"
require "open3"

module Bench
  module Load
    # The load tool of this checkout, `fairlead bench` (crates/load).
    class Fairlead
      # Statuses 0 and 2 both come with a report: 2 means that some responses were not good, which the errors show.
      REPORTED = [0, 2].freeze

      # Seconds that a number of requests may take.
      LONGEST = "300"

      def available?
        !Binaries.load_tool.nil?
      end

      def version
        "fairlead bench #{File.read(File.join(ROOT, "Cargo.toml"))[/^version = "([^"]+)"/, 1]}"
      end

      # Ends after `requests` if given, else after `seconds`; requests in the `warm_up` seconds before are not counted.
      # With `rate`, that many are sent each second, even if responses are late. Without `keep_alive` each request has
      # its own connection. `tls` is a Tls, for https. With `streams` the tool uses HTTP/2: that many at a time on each
      # connection, or, for a list ("100,1x10"), on as many connections as the list says. A request without a response
      # is given up after `timeout` seconds, or after the tool's default. With `within` seconds, good responses in this time are counted,
      # apart from refusals. `source` is the local address.
      def measure(url, connections:, seconds:, requests: nil, rate: nil, warm_up: 0, keep_alive: true, tls: nil, streams: nil,
                  timeout: nil, within: nil, source: nil)
        extent = requests ? ["-n", requests.to_s, "-d", LONGEST] : ["-d", seconds.to_s]
        extent += ["--warmup", warm_up.to_s] if warm_up.positive?
        extent += ["--rate", rate.to_s] if rate
        extent << "--no-keep-alive" unless keep_alive
        extent += ["--timeout", timeout.to_s] if timeout
        extent += ["--within", within.to_s] if within
        extent += ["--source", source] if source
        extent += tls.arguments if tls
        extent += ["--http2", "--streams", streams.to_s] if streams
        extent += ["-c", connections.to_s] unless streams.is_a?(String)
        measurement(report(url, *extent))
      end

      # True if a server speaks HTTP/2; raises an Error if it speaks something else.
      def answers_http2?(url)
        _, error, status = Open3.capture3(Binaries.load_tool, url, "--http2", "-n", "1", "-c", "1", "-q", "--timeout", "5",
                                          *("--insecure" if url.start_with?("https")))
        raise Error, error.strip if error.include?("HTTP/2")

        status.success?
      end

      # Requests with several names, drawn from the lines of a file, with common header fields. Returns a Measurement of
      # all, and name => Measurement for each, as far as the tool separates them. `requests`: as for #measure.
      def mix(url, file:, fields:, connections:, seconds:, requests: nil, warm_up: 0)
        heads = fields.flat_map { |name, value| ["-H", "#{name}: #{value}"] }
        extent = requests ? ["-n", requests.to_s, "-d", LONGEST] : ["-d", seconds.to_s, "--warmup", warm_up.to_s]
        found = report(url, "--mix", file, *heads, "-c", connections.to_s, *extent)
        [measurement(found), found["mix"].to_h { |kind| [kind["name"], measurement_of_kind(kind, found["seconds"])] }]
      end

      # Over WebSockets or event streams; returns the tool's document. The block is called once, when all idle sockets
      # are open.
      def real_time(*arguments, &block)
        Open3.popen3(Binaries.load_tool, *arguments, "--json") do |input, output, error, process|
          input.close
          document = Thread.new { output.read }
          said = error.each_line.reject { |line| line.start_with?("holding ").tap { |held| block.call if held && block } }
          status = process.value
          raise Error, "the load tool failed: #{said.join}#{document.value}" unless REPORTED.include?(status.exitstatus)

          JSON.parse(document.value)
        end
      end

      private

      def report(*arguments)
        output, error, status = Open3.capture3(Binaries.load_tool, *arguments, "--json", "-q")
        raise Error, "the load tool failed: #{error}#{output}" unless REPORTED.include?(status.exitstatus)

        JSON.parse(output)
      end

      def measurement_of_kind(kind, seconds)
        Measurement.new(rate: kind["answered"] / seconds, requests: kind["answered"], seconds: seconds, errors: {},
                        latency: Load.curve(kind["latency_ms"]))
      end

      def measurement(found)
        Measurement.new(
          rate: found["requests"]["per_second"], requests: found["requests"]["answered"], seconds: found["seconds"],
          errors: found["errors"].reject { |_, count| count.zero? }, bytes: found["bytes"]["read"],
          latency: Load.curve(found["latency_ms"]["raw"]), corrected: Load.curve(found["latency_ms"]["corrected"]),
          per_connection: found["connections"].map { |connection| connection["answered"] }, tls: found["tls"], http2: found["http2"],
          good: found["good"], refused: found["refused"]
        )
      end
    end
  end
end
