# frozen_string_literal: true

require "json"
require "open3"
require "tempfile"

module Bench
  module Load
    # wrk through a Lua script that prints its results as JSON.
    class Wrk
      PERCENTILES = [0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 100].freeze

      SCRIPT = <<~LUA.freeze
        done = function(summary, latency, requests)
          local points = {}
          for _, p in ipairs({#{PERCENTILES.join(",")}}) do
            local value = p == 0 and latency.min or p == 100 and latency.max or latency:percentile(p)
            table.insert(points, string.format('"%s":%f', p, value / 1000))
          end
          local e = summary.errors
          io.write(string.format(
            '\\n{"requests":%d,"bytes":%d,"seconds":%f,"latency":{%s},' ..
            '"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}}\\n',
            summary.requests, summary.bytes, summary.duration / 1e6, table.concat(points, ","),
            e.connect, e.read, e.write, e.status, e.timeout))
        end
      LUA

      def available?
        !version.nil?
      end

      def version
        output, = Open3.capture2e("wrk", "-v")
        output[/\Awrk\s+\S+/]
      rescue Errno::ENOENT
        nil
      end

      # wrk has no limit for the number of requests: instead, the run lasts for an estimated time. It has no warm-up
      # either, so all requests are counted. It reports nothing about TLS.
      def measure(url, connections:, seconds:, requests: nil, warm_up: 0, **others)
        raise Error, "wrk has no #{others.keys.join(" and no ")}" unless others.empty?

        seconds = [seconds, 8].max if requests
        seconds += warm_up
        Tempfile.create(["bench", ".lua"]) do |script|
          script.write(SCRIPT)
          script.close
          output, error, status = Open3.capture3("wrk", "-t", "1", "-c", connections.to_s, "-d", "#{seconds.ceil}s",
                                                 "--timeout", "10s", "-s", script.path, url)
          raise Error, "wrk failed: #{error}#{output}" unless status.success?

          measurement(JSON.parse(output.lines.last))
        end
      end

      def mix(_url, **)
        raise Error, "wrk cannot mix requests"
      end

      private

      def measurement(found)
        Measurement.new(rate: found["requests"] / found["seconds"], requests: found["requests"], seconds: found["seconds"],
                        errors: found["errors"].reject { |_, count| count.zero? }, latency: found["latency"].transform_keys(&:to_f),
                        bytes: found["bytes"])
      end
    end
  end
end
