# frozen_string_literal: true

require "zlib"
require_relative "client"

module Fairlead
  module Soak
    module Clients
      # Responses of every form and size.
      class Download < Client
        share 10
        FORMS = %w[array several each slow enumerator length streamed call].freeze

        def run
          client = connect
          random.rand(1..4).times { get(client, "download", { "form" => pick(*FORMS) }, size: size(1, pick(5000, 100_000, 2_000_000))) }
        end
      end

      # A stream that the application keeps and writes to from another thread.
      class KeptStream < Client
        share 2

        def run = get(connect, "download", { "form" => "kept" }, size: size(1, 500_000))
      end

      # Responses that the server compresses if the client accepts it.
      class Text < Client
        share 6
        FORMS = %w[array several each slow enumerator length call].freeze

        def run
          client = connect
          random.rand(1..4).times { text(client, new_id, size(1, pick(5000, 300_000))) }
        end

        private

        def text(client, id, size)
          coding = pick("gzip", "identity")
          client.write(request("text", id, { "size" => size, "form" => pick(*FORMS) }, { "accept-encoding" => coding }))
          answer = client.final_answer
          expect_owner(answer, id)
          Pattern.check(plain(answer), id, size)
        end

        def plain(answer)
          return answer.body unless answer["content-encoding"]
          raise Pattern::Wrong, answer["content-encoding"] unless answer["content-encoding"] == "gzip"

          Zlib.gunzip(answer.body)
        rescue Zlib::Error => e
          raise Pattern::Wrong, e.message
        end
      end

      # Files that the application names, complete.
      class NamedFile < Client
        share 5

        def run
          client = connect
          random.rand(1..4).times { named(client, new_id, pick(*Files::SIZES)) }
        end

        private

        def named(client, id, size)
          client.write(request("file", id, { "form" => pick("path", "pathname", "open", "sendfile"), "name" => Files.name(size) }))
          answer = client.final_answer
          expect_owner(answer, id)
          Pattern.check(answer.body, Files.id(size), size)
        end
      end

      # Files of the public folder: complete, in part, and unchanged ones.
      class PublicFile < Client
        share 8

        def run
          client = connect
          random.rand(1..8).times { pick(:whole, :whole, :part, :unchanged).then { |what| send(what, client, pick(*Files::SIZES)) } }
        end

        private

        def file(client, size, fields = {})
          @last = "#{Files.name(size)} #{fields}"
          client.request("GET", "/#{Files.name(size)}", fields).final_answer.tap { |answer| refuse(answer) unless answer.status < 400 }
        end

        def whole(client, size) = Pattern.check(file(client, size).body, Files.id(size), size)

        def part(client, size)
          return whole(client, size) if size < 2

          first, last = Array.new(2) { random.rand(size) }.minmax
          answer = file(client, size, "range" => "bytes=#{first}-#{last}")
          raise Pattern::Wrong, "status #{answer.status}" unless answer.status == 206

          expected = Pattern.bytes(Files.id(size), size).byteslice(first..last)
          raise Pattern::Wrong, "range #{first}-#{last} of #{size}" unless answer.body == expected
        end

        def unchanged(client, size)
          answer = file(client, size, "if-none-match" => file(client, size)["etag"])
          raise Pattern::Wrong, "status #{answer.status}" unless answer.status == 304
        end
      end

      # A client that stops reading in the middle of a large response, and continues later, or disconnects.
      class Stall < Client
        share 3

        def run
          client = connect
          client.socket.setsockopt(:SOCKET, :RCVBUF, 8192) if (narrow = chance?(0.3))
          id = new_id
          size = size(100_000, narrow ? 300_000 : 4_000_000)
          client.write(request("download", id, { "size" => size, "form" => pick("array", "each", "length", "call") }))
          client.readable?(Site::PATIENCE)
          sleep(random.rand * 1.5)
          return client.reset if chance?(0.4)

          expect(client.final_answer, id, size)
        end
      end
    end
  end
end
