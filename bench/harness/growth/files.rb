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
        {
          "request for one of n files, again, µs" => again(target, cost, Array.new(count) { |index| "/#{count}/#{index}.txt" }),
          "request for one file in a folder of n, µs" => again(target, cost, ["/#{count}/0.txt"]),
          "memory, MiB" => target.running.group.memory_kib / 1024.0
        }
      end

      private

      # All paths one after another, on one connection, and in the same order again; the first time is not counted.
      def again(target, cost, paths)
        client = IdleConnections.new(target.running.port, tls: nil)
        paths.each { |path| client.ask(path) }
        times = [REQUESTS / paths.size, 1].max
        cost.each(times * paths.size) { times.times { paths.each { |path| client.ask(path) } } }
      ensure
        client&.close
      end
    end
  end
end
