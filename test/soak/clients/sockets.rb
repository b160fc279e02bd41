# frozen_string_literal: true

require_relative "client"

module Fairlead
  module Soak
    module Clients
      # A socket that the application takes over, completely or behind the head, for its own protocol.
      class Hijack < Client
        share 4

        def run
          client = connect
          id = new_id
          whole = chance?(0.5)
          lines = Array.new(random.rand(1..10)) { |number| "#{number} #{Pattern.bytes(id, size(1, pick(3000, 60_000)))}\n" }
          early = chance?(0.5) ? lines.first(random.rand(lines.size)) : []
          client.write(request(whole ? "take" : "take_part", id) + early.join)
          read_start(client, id, whole)
          client.write((lines - early).join)
          lines.each { |line| expect_line(client, id, line) }
          leave(client)
        end

        private

        # A process that ends, because it is replaced, does not wait for such sockets.
        def excused? = super || (@process && ends?(@process))

        def ends?(process)
          Test::Waiting.wait_until("the process to end", seconds: 5) { !Test::Processes.alive?(process) }
        rescue Test::Waiting::Expired
          false
        end

        def read_start(client, id, whole)
          if whole
            line = client.read_through("\n")
            excuse(line[9, 3].to_i, line) unless line.start_with?("#{format("%x", id)} ")
            return @process = line.split.last.to_i
          end
          head = client.read_through("\r\n\r\n")
          excuse(head[9, 3].to_i) unless head.match?(/^x-id: #{format("%x", id)}\r$/)
          @process = head[/^x-pid: (\d+)/, 1].to_i
        end

        def expect_line(client, id, line)
          got = client.read_through("\n")
          Pattern.check_owner(got, id, "line")
          raise Pattern::Wrong, "line #{got[0, 60].inspect}" unless got == "#{format("%x", id)} #{line}"
        end

        def leave(client)
          return client.reset if chance?(0.3)

          client.half_close
          raise Pattern::Wrong, "bytes behind the last line" unless client.closed?
        end
      end
    end
  end
end
