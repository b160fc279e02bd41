# frozen_string_literal: true

require_relative "client"

module Fairlead
  module Soak
    module Clients
      # Clients that send a request and crash.
      class Reset < Client
        share 6

        def run
          client = connect
          id = new_id
          body = Pattern.bytes(id, size(1, 200_000))
          bytes = pick(request("small", id, { "size" => 100 }), request("download", id, { "size" => 300_000, "form" => "each" }),
                       request("upload", id, {}, method: "POST", body: body) + body, request("work", id, { "how" => "sleep", "ms" => 10 }))
          client.write(chance?(0.5) ? bytes : bytes.byteslice(0, random.rand(bytes.bytesize)))
          sleep(random.rand * 0.02) if chance?(0.5)
          client.reset
        end
      end

      # Clients that close their sending side, and expect their responses.
      class HalfClose < Client
        share 3

        def run
          client = connect
          ids = Array.new(random.rand(1..3)) { new_id }
          client.write(ids.map { |id| request("small", id, { "size" => 300 }) }.join).half_close
          ids.each { |id| expect(client.final_answer, id, 300) }
          raise Pattern::Wrong, "bytes behind the last response" unless client.closed?
        end
      end

      # Invalid requests, some of them nearly valid. No response may contain another client's bytes.
      class Garbage < Client
        share 4

        def run
          client = connect
          id = new_id
          client.write(garbage(id))
          client.half_close
          Pattern.check_owner(client.rest, id)
        end

        private

        def garbage(id)
          bytes = request("small", id, { "size" => 100 }).sub(/^x-from: .*\r\n/, "x-other: 1\r\n")
          case random.rand(4)
          when 0 then random.bytes(random.rand(1..3000))
          when 1 then with_mistakes(bytes)
          when 2 then bytes.sub("\r\n", "\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n")
          else "#{bytes.byteslice(0, random.rand(bytes.bytesize))}#{random.bytes(20)}"
          end
        end

        # Changes bytes behind the first line, which identifies the request.
        def with_mistakes(bytes)
          first = bytes.index("\n")
          random.rand(1..5).times { bytes.setbyte(random.rand(first...bytes.bytesize), random.rand(256)) }
          bytes
        end
      end

      # WebSockets that violate the protocol.
      class BrokenFrames < Client
        share 2

        def run
          client = connect
          id = new_id
          fields = { "upgrade" => "websocket", "connection" => "upgrade", "sec-websocket-version" => "13",
                     "sec-websocket-key" => "dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-extensions" => "permessage-deflate" }
          client.write(request("talk", id, {}, fields))
          client.read_through("\r\n\r\n")
          client.write(random.bytes(random.rand(2..2000)))
          client.half_close
          Pattern.check_owner(client.rest, id)
        rescue Errno::EPIPE
          nil # closed at once
        end
      end
    end
  end
end
