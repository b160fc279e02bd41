# frozen_string_literal: true

require_relative "client"

module Fairlead
  module Soak
    module Clients
      # Applications that fail instead of responding. The client gets 500 or the end of its connection, and its next request
      # gets a response.
      class Failing < Client
        share 6
        HOWS = %w[error script memory exit interrupt throw deep kill outside].freeze

        def run
          client = connect
          id = new_id
          how = pick(*HOWS)
          at = pick("call", "first", "middle", "close")
          client.write(request("fail", id, { "how" => how, "at" => at, "size" => 2000 }))
          at == "close" ? expect_all(client, id, how) : expect_failure(client, id)
          get(client.socket.closed? || @over ? connect : client, "small")
        end

        private

        # The response was complete before the failure.
        def expect_all(client, id, how)
          expect(client.final_answer, id, 2000)
          @over = how == "kill"
        end

        def expect_failure(client, id)
          answer = client.final_answer
          Pattern.check_owner(answer.body, id)
          raise Pattern::Wrong, "status #{answer.status}, and a whole body" unless answer.status >= 500
        rescue HttpClient::CutOff
          @over = true
        end
      end

      # Timeouts in the application itself, in the middle of its work.
      class TimeOut < Client
        share 2

        def run
          client = connect
          return get(client, "timeout", { "in" => "call" }) if chance?(0.5)

          id = new_id
          client.write(request("timeout", id, { "in" => "body", "size" => 500 }))
          answer = client.final_answer
          expect_owner(answer, id)
          Pattern.check_owner(answer.body, id)
          raise Pattern::Wrong, "ends with #{answer.body[-30..].inspect}" unless answer.body.end_with?("END\n")
        end
      end

      # catch and throw in the application itself.
      class Catch < Client
        share 1

        def run = get(connect, "catch", size: size(100, 100_000))
      end

      # Children that the application forks. One of them holds all of the server's descriptors until the client has seen the
      # end of its connection.
      class Fork < Client
        share 1

        def run
          client = connect
          return get(client, "fork", { "how" => pick("wait", "exit") }) if chance?(0.5)

          mark = site.server.path("seen-#{@number}")
          get(client, "fork", { "how" => "linger", "until" => mark }, { "connection" => "close" })
          raise Pattern::Wrong, "bytes behind the response" unless client.closed?
          raise Pattern::Wrong, "the connection ended only with the child" if File.exist?("#{mark}-in-vain")
        ensure
          File.write(mark, "") if mark
        end
      end

      # Blocks and sockets that the application keeps from one request and uses in another.
      class Keep < Client
        share 4

        def run
          client = connect
          size = size(100, 5000)
          get(client, pick("keep", "keep_fields", "keep_hints", "keep_hijack", "use", "use", "use"), size: size)
          get(client, "use", size: size)
        end
      end

      # Threads of the application that use one body concurrently, or change it.
      class Threads < Client
        share 3

        def run
          client = connect
          case pick(:two, :change, :abandon)
          when :two then two(client, new_id, size(50, 3000))
          when :change then prefix(client, "change", new_id, size(50, 30_000))
          else prefix(client, "abandon", new_id, size(50, 3000), { "how" => pick("raise", "return") })
          end
          get(connect, "small")
        end

        private

        # Complete lines of both threads.
        def two(client, id, size)
          client.write(request("two", id, { "size" => size }, chance?(0.7) ? { "accept-encoding" => "gzip" } : {}))
          answer = client.final_answer
          expect_owner(answer, id)
          lines = (answer["content-encoding"] ? Zlib.gunzip(answer.body) : answer.body).lines
          line = "#{Pattern.bytes(id, size)}\n"
          raise Pattern::Wrong, "#{lines.size} lines, some not whole" unless lines.uniq == [line] && lines.size.between?(20, 40)
        rescue Zlib::Error => e
          raise Pattern::Wrong, e.message
        end

        # Any beginning of the response, but no other client's bytes.
        def prefix(client, name, id, size, parameters = {})
          client.write(request(name, id, { "size" => size, **parameters }))
          answer = client.final_answer
          Pattern.check_owner(answer.body, id)
        rescue HttpClient::CutOff
          nil # the application has left
        end
      end

      # The process collects its garbage all the time while it serves others.
      class Stress < Client
        share 0

        def run = get(connect, "stress", chance?(0.2) ? { "compact" => 1 } : {})
      end
    end
  end
end
