# frozen_string_literal: true

require "digest/sha1"
require_relative "client"

module Fairlead
  module Soak
    module Clients
      # Bodies of every size, in memory and in temporary files, with a length or in chunks, with and without expect.
      class Upload < Client
        share 8
        SIZES = [[1, 20_000], [1, 20_000], [20_000, 120_000], [120_000, 2_000_000]].freeze

        def run
          client = connect
          random.rand(1..4).times { upload(client, new_id, size(*SIZES.sample(random: random))) }
        end

        private

        def upload(client, id, size)
          body = Pattern.bytes(id, size)
          chunked = chance?(0.4)
          fields = chunked ? { "transfer-encoding" => "chunked" } : { "content-length" => size }
          fields["expect"] = "100-continue" if (announced = chance?(0.2))
          client.write(request("upload", id, { "how" => pick("read", "pieces", "each", "gets") }, fields, method: "POST"))
          raise Pattern::Wrong, "no 100" if announced && (answer = client.answer).status != 100 && !refuse(answer)

          send_body(client, chunked ? in_chunks(body) : body)
          answer = client.final_answer
          expect_owner(answer, id)
          expected = "#{size} #{Digest::SHA1.hexdigest(body)}"
          raise Pattern::Wrong, "uploaded #{expected}, arrived #{answer.body}" unless answer.body == expected
        end

        def send_body(client, bytes)
          return client.write(bytes) if chance?(0.5)

          at = 0
          while at < bytes.bytesize
            length = size(1, 200_000)
            client.write(bytes.byteslice(at, length))
            at += length
          end
        end

        def in_chunks(body)
          at = 0
          chunks = +"".b
          while at < body.bytesize
            piece = body.byteslice(at, size(1, 100_000))
            chunks << format("%x\r\n", piece.bytesize) << piece << "\r\n"
            at += piece.bytesize
          end
          chunks << "0\r\n" << (chance?(0.3) ? "x-trailer: 1\r\n" : "") << "\r\n"
        end
      end

      # A slow request, byte by byte at first.
      class Trickle < Client
        share 2

        def run
          client = connect
          id = new_id
          body = Pattern.bytes(id, 2000)
          bytes = request("upload", id, {}, method: "POST", body: body) + body
          random.rand(5..30).times { client.write(bytes.slice!(0, random.rand(1..5))) && sleep(random.rand * 0.02) }
          client.write(bytes)
          answer = client.final_answer
          expect_owner(answer, id)
          raise Pattern::Wrong, answer.body unless answer.body == "2000 #{Digest::SHA1.hexdigest(body)}"
        end
      end
    end
  end
end
