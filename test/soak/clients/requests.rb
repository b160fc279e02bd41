# frozen_string_literal: true

require_relative "client"

module Fairlead
  module Soak
    module Clients
      # Small requests, one after the other on one connection.
      class Small < Client
        share 20

        def run
          client = connect
          random.rand(1..20).times { get(client, "small", size: size(1, 5000)) }
        end
      end

      # Pipelined requests, sent in pieces that do not end at a request's end.
      class Pipelined < Client
        share 8

        def run
          client = connect
          ids = Array.new(random.rand(2..25)) { [new_id, size(1, 20_000)] }
          send_in_pieces(client, ids.map { |id, size| request("small", id, { "size" => size }) }.join)
          ids.each { |id, size| expect(client.final_answer, id, size) }
        end

        private

        def send_in_pieces(client, bytes)
          client.write(bytes.slice!(0, random.rand(1..bytes.bytesize))) until bytes.empty?
        end
      end

      # Requests with a body that the application does not read, and requests with code that runs after their response.
      class Unread < Client
        share 3

        def run
          client = connect
          random.rand(1..4).times { chance?(0.5) ? unread(client, new_id) : get(client, "later", { "how" => pick("defer", "timer") }) }
        end

        private

        def unread(client, id)
          body = Pattern.bytes(id, size(1, 100_000))
          client.write(request("small", id, { "size" => 300 }, method: "POST", body: body) + body)
          expect(client.final_answer, id, 300)
        end
      end

      # Responses that take a while: asleep, computing, or computing with the lock held.
      class Work < Client
        share 6

        def run
          client = connect
          random.rand(1..4).times { get(client, "work", { "how" => pick("sleep", "sleep", "compute", "lock"), "ms" => random.rand(1..30) }) }
        end
      end

      # Early hints from the application (103).
      class Hints < Client
        share 3

        def run
          client = connect
          random.rand(1..3).times { hinted(client) }
        end

        private

        def hinted(client)
          id = new_id
          count = random.rand(1..3)
          client.write(request("hints", id, { "size" => 50, "count" => count }))
          answers = Array.new(count + 1) { client.answer }
          hints = answers[0...count].map { |answer| answer["link"] }
          raise Pattern::Mixed, "hints #{hints}" unless hints == Array.new(count) { |number| format("<%x.%d>", id, number) }

          expect(answers.last, id, 50)
        end
      end

      # The head of a response without its body, then a response.
      class Head < Client
        share 1

        def run
          client = connect
          id = new_id
          client.write(request("download", id, { "size" => 5000, "form" => "array" }, method: "HEAD"))
          expect_owner(client.final_answer(to: "HEAD"), id)
          get(client, "small")
        end
      end
    end
  end
end
