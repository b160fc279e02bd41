# frozen_string_literal: true

module Bench
  module Growth
    # Requests for public files: one after another of n different ones, in one folder and in many, and one of a folder with n entries.
    class Files
      # Requests of a batch, and the most for which it asks for each file once.
      REQUESTS = (1000..10_000)
      BYTES = 100
      # Files of each of the many folders.
      OF_A_FOLDER = 100

      class << self
        # All files of a site: path => bytes. Each number of files has a folder, and a tree of folders.
        def contents(counts)
          paths = counts.flat_map { |count| Array.new(count) { |index| [one(count, index), one_of_many(count, index)] } }
          paths.flatten.to_h { |path| ["public#{path}", BYTES] }
        end

        def one(count, index) = "/#{count}/#{index}.txt"

        def one_of_many(count, index) = "/many/#{count}/#{index / OF_A_FOLDER}/#{index}.txt"
      end

      def figures(target, count)
        cost = Cost.new(target.running.group)
        paths = %i[one one_of_many].to_h { |name| [name, Array.new(count) { |index| Files.public_send(name, count, index) }] }
        {
          "request for one of n files, again, µs" => again(target, cost, paths[:one]),
          "request for one of n files in many folders, again, µs" => again(target, cost, paths[:one_of_many]),
          "request for one file in a folder of n, µs" => again(target, cost, paths[:one].first(1)),
          "memory, MiB" => target.running.group.memory_kib / 1024.0
        }
      end

      private

      # All paths one after another, on one connection, and in another order again, or some of them if there are very many; the first time is
      # not counted.
      def again(target, cost, paths)
        client = IdleConnections.new(target.running.port, tls: nil)
        paths.each { |path| client.ask(path) }
        others = Array.new(paths.size.clamp(REQUESTS)) { |index| paths[index * 7919 % paths.size] }
        cost.each(others.size) { others.each { |path| client.ask(path) } }
      ensure
        client&.close
      end
    end
  end
end
