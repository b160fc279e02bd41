# frozen_string_literal: true

require "io/wait"
require "rack/utils"
require "securerandom"
require "socket"

module Fairlead
  module Control
    class Tool
      # Shows the dashboard to a browser of this machine, for as long as the command runs: forwards a port of the loopback
      # interface to the control server, which may have a Unix socket. The browser never has the token of the control server.
      # It has a secret of this run, behind the # of the printed address, which browsers do not send.
      #
      # Only what the page needs is forwarded, and nothing of it changes the server. The page of another origin gets nothing: it
      # does not know the secret, and neither its own host name for this machine nor its origin is accepted.
      class Dashboard
        # The files of the page, which contain nothing secret.
        FILES = %w[/ /dashboard.css /texts.js /elements.js /chart.js /dashboard.js].freeze
        DATA = %w[/dashboard/events /backtraces].freeze

        # A host of this machine, with any port: the port of a tunnel through SSH is another one.
        HOST = /\A(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?\z/i

        # Most connections at once, most bytes of a head, and seconds for it.
        CONNECTIONS = 32
        HEAD = 8 * 1024
        SECONDS = 5

        # Refuses a request.
        class Refused < StandardError
          attr_reader :status

          def initialize(status, message)
            super(message)
            @status = status
          end
        end

        # +output+: prints the address. The block returns a Client of the control server, which a restart may replace.
        def initialize(output, &client)
          @output = output
          @client = client
          @secret = SecureRandom.hex(16)
          @connections = ThreadGroup.new
          @silent = Thread::Queue.new
        end

        # Runs until a signal.
        def run
          @client.call.get("snapshot") # or raises the reason
          listener = TCPServer.new("127.0.0.1", 0)
          CLI.print("http://127.0.0.1:#{listener.addr[1]}/##{@secret}\nOpen this address in a browser. It works until Ctrl-C.\n", @output)
          loop { admit(listener.accept) }
        ensure
          listener&.close
          @connections.list.each(&:kill)
        end

        private

        # If there are too many connections, the longest silent connection gives way.
        def admit(browser)
          make_room if @connections.list.size >= CONNECTIONS
          return browser.close if @connections.list.size >= CONNECTIONS

          thread = Thread.new { serve(browser) }
          @connections.add(thread)
          @silent << thread
        end

        def make_room
          oldest = @silent.pop(true) until oldest&.alive? && !oldest[:heard]
          oldest.kill.join
        rescue ThreadError
          nil # all have sent a request
        end

        def serve(browser)
          target = permitted(read_head(browser))
          Thread.current[:heard] = true
          forward(target, browser)
        rescue Refused => e
          answer(browser, e.status, e.message)
        rescue Client::Failure, Target::Missing => e
          answer(browser, "502 Bad Gateway", SystemText.shown(e.message))
        rescue SystemCallError, IOError
          nil # the browser has left
        ensure
          browser.close
        end

        def read_head(browser)
          head = +""
          deadline = Clock.now + SECONDS
          until head.include?("\r\n\r\n")
            raise Refused.new("408 Request Timeout", "too slow") unless browser.wait_readable([deadline - Clock.now, 0].max)

            head << browser.readpartial(HEAD)
            raise Refused.new("431 Request Header Fields Too Large", "too long") if head.bytesize > HEAD
          end
          head
        end

        # The target to ask the control server for. Raises Refused.
        def permitted(head)
          line, *fields = head.b.split("\r\n", -1)
          fields = fields.to_h { |field| field.split(":", 2).then { |name, value| [name.to_s.downcase, value.to_s.strip] } }
          target = line[%r{\AGET (/[!-~]*) HTTP/1\.[01]\z}, 1] or raise Refused.new("405 Method Not Allowed", "only GET")
          path = target[/\A[^?]*/]
          raise Refused.new("403 Forbidden", "another host") unless HOST.match?(fields["host"].to_s)
          raise Refused.new("404 Not Found", "not part of the dashboard") unless FILES.include?(path) || DATA.include?(path)

          check(fields) if DATA.include?(path)
          target
        end

        def check(fields)
          own = [nil, "http://#{fields["host"]}"].include?(fields["origin"]) && [nil, "none", "same-origin"].include?(fields["sec-fetch-site"])
          raise Refused.new("403 Forbidden", "a page of another origin") unless own

          given = fields["authorization"].to_s[/\ABearer (\S+)\z/, 1].to_s
          raise Refused.new("403 Forbidden", "another secret") unless Rack::Utils.secure_compare(@secret, given)
        end

        def forward(target, browser)
          @client.call.stream(target.delete_prefix("/")) { |part| browser.write(part) }
        end

        def answer(browser, status, text)
          browser.write("HTTP/1.1 #{status}\r\ncontent-type: text/plain; charset=utf-8\r\nx-content-type-options: nosniff\r\n" \
                        "connection: close\r\ncontent-length: #{text.bytesize}\r\n\r\n#{text}")
        rescue SystemCallError, IOError
          nil
        end
      end
    end
  end
end
