# frozen_string_literal: true

module Bench
  module Growth
    # Requests for public files: one after another of n different ones, and one of a folder with n entries.
    class Files
      REQUESTS = 1000
      BYTES = 100

      # All files of a site: path => bytes. Each number of files has a folder.
      def self.contents(counts)
        counts.flat_map { |count| Array.new(count) { |index| ["public/#{count}/#{index}.txt", BYTES] } }.to_h
      end

      def figures(target, count)
        cost = Cost.new(target.running.group)
        requests = [REQUESTS, count].max
        {
          "request for one of n files, again, µs" => again(target, cost, Array.new(count) { |index| "/#{count}/#{index}.txt" }, requests),
          "request for one file in a folder of n, µs" => again(target, cost, ["/#{count}/0.txt"], REQUESTS),
          "memory, MiB" => target.running.group.memory_kib / 1024.0
        }
      end

      private

      def again(target, cost, paths, requests)
        file = target.running.site.write("requests", paths.map { |path| "1 file GET #{path}" }.join("\n"))
        cost.each(requests) do
          all, = target.load_tool.mix(target.running.url("/"), file: file, fields: {}, connections: 1, seconds: nil, requests: requests)
          raise Error, "requests failed: #{all.errors}" if all.error_count.positive?
        end
      end
    end
  end
end
