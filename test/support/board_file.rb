# frozen_string_literal: true

require "json"
require_relative "waiting"

module Fairlead
  module Test
    # Reads the scoreboard of a server with workers. Only its own processes can see it, so a thread of the supervisor writes
    # it to a file.
    #
    #   server = serve(APP, "-w", 2, "-C", "board.rb", files: { "board.rb" => BoardFile::SCRIPT })
    #   BoardFile.new(server)["waiting"]   # => 0
    class BoardFile
      include Waiting

      # The configuration that starts the thread.
      SCRIPT = <<~RUBY
        require "json"
        after_booted do
          board = ObjectSpace.each_object(Fairlead::Native::Shared).first
          Thread.new do
            loop do
              File.write("stats.new", JSON.dump(board.stats))
              File.rename("stats.new", "stats")
              sleep 0.02
            end
          end
        end
      RUBY

      def initialize(server)
        @path = server.path("stats")
      end

      # Returns a recent value from Native::Shared#stats: "workers", or one of the statistics of the waiting room.
      def [](name)
        wait_until("the scoreboard") { File.exist?(@path) }
        stats = JSON.parse(File.read(@path))
        stats.merge(stats["room"]).fetch(name)
      end
    end
  end
end
