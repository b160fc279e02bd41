# frozen_string_literal: true

module Fairlead
  module Soak
    # Ordinary responses.
    module Answers
      class << self
        def all
          { "small" => method(:small), "work" => method(:work), "download" => method(:download), "text" => method(:text),
            "file" => method(:file), "upload" => method(:upload), "hints" => method(:hints) }
        end

        def small(asked) = [200, asked.fields, [asked.bytes]]

        # Sleeps, computes in Ruby, or computes without letting other threads have the lock.
        def work(asked)
          seconds = asked["ms"].to_i / 1000.0
          case asked["how"]
          when "sleep" then sleep(seconds)
          when "compute" then (finish = now + seconds) && (nil while now < finish)
          else (finish = now + seconds) && ((7**20_000).to_s while now < finish)
          end
          small(asked)
        end

        def download(asked)
          fields, body = Bodies.make(asked["form"], asked.bytes)
          [200, asked.fields(fields), body]
        end

        # The same with a content type that is compressed.
        def text(asked)
          fields, body = Bodies.make(asked["form"], asked.bytes)
          [200, asked.fields(fields.merge("content-type" => "text/plain")), body]
        end

        def file(asked)
          fields, body = Bodies.file(asked["form"], asked["name"])
          [200, asked.fields(fields), body]
        end

        # Reads the body in one of the ways, and responds with its size and digest.
        def upload(asked)
          body = read(asked.env["rack.input"], asked["how"])
          [200, asked.fields, ["#{body.bytesize} #{Digest::SHA1.hexdigest(body)}"]]
        end

        def hints(asked)
          asked["count"].to_i.times { |number| asked.env["rack.early_hints"]&.call("link" => format("<%x.%d>", asked.id, number)) }
          small(asked)
        end

        private

        def read(input, how)
          case how
          when "pieces" then gather { input.read(10_000) }
          when "each" then "".b.tap { |body| input.each { |line| body << line } }
          when "gets" then gather { input.gets }
          else input.read
          end
        end

        def gather
          body = "".b
          while (piece = yield)
            body << piece
          end
          body
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
