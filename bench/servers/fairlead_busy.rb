# frozen_string_literal: true

require "socket"
require_relative "fairlead_public"

module Bench
  module Servers
    # Fairlead that serves a folder while all its Ruby threads run in busy loops. The scenario's app has a path for
    # that: it adds a byte to the file `burning` and loops as long as the file exists.
    class FairleadBusy < FairleadPublic
      PATH = "/burn"
      DEADLINE = 10

      def name
        "fairlead-busy"
      end

      def runs?(_shape, scenario)
        scenario.burns?
      end

      def note(shape)
        "`--public`, with all #{shape.concurrency} threads in busy loops, so that Ruby takes #{shape.workers} processors"
      end

      def under(running, shape)
        burning = running.site.write("burning", "")
        clients = Array.new(shape.concurrency) { burn(running) }
        wait_until_all_burn(burning, shape)
        found = yield
        raise Error, "a thread has left its busy loop" if IO.select(clients, nil, nil, 0)

        found
      ensure
        File.unlink(burning) if burning
        clients&.each(&:close)
      end

      private

      def burn(running)
        TCPSocket.new("127.0.0.1", running.port).tap { |socket| socket.write("GET #{PATH} HTTP/1.1\r\nhost: localhost\r\n\r\n") }
      end

      def wait_until_all_burn(burning, shape)
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + DEADLINE
        until File.size(burning) == shape.concurrency
          raise Error, "#{File.size(burning)} of #{shape.concurrency} threads burn" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

          sleep 0.02
        end
      end
    end
  end
end
