# frozen_string_literal: true

require "digest/sha1"
require_relative "client"

module Fairlead
  module Soak
    module Clients
      # A request for which the application opens a few files.
      class OpenFiles < Client
        share 2

        def run = get(connect, "open", { "ms" => random.rand(10) })
      end

      # Many concurrent uploads that stop in the middle, each with a temporary file.
      class Standing < Client
        share 0

        def run
          uploads = Array.new(random.rand(20..60)) { begin_upload(new_id) }
          sleep(random.rand * 0.5)
          uploads.each { |client, _, body| client.write(body.byteslice(40_000..)) }
          uploads.reverse_each { |client, id, body| finish_upload(client, id, body) }
        end

        private

        def begin_upload(id)
          client = connect
          body = Pattern.bytes(id, 60_000)
          client.write(request("upload", id, {}, method: "POST", body: body) + body.byteslice(0, 40_000))
          [client, id, body]
        end

        def finish_upload(client, id, body)
          answer = client.final_answer
          expect_owner(answer, id)
          raise Pattern::Wrong, answer.body unless answer.body == "#{body.bytesize} #{Digest::SHA1.hexdigest(body)}"
        end
      end

      # An application that opens as many files as it can.
      class Hog < Client
        share 0

        def run = site.scarce { get(connect, "hog", { "ms" => random.rand(50..200) }) }
      end
    end
  end
end
