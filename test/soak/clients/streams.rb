# frozen_string_literal: true

require "digest/sha1"
require "http/2"
require_relative "client"

module Fairlead
  module Soak
    module Clients
      # An HTTP/2 connection, and the responses on its streams.
      class Session
        # hints: the fields `link` of interim responses. ended: :whole, or the code of a reset.
        Answer = Struct.new(:stream, :status, :fields, :hints, :body, :ended) do
          def [](name) = fields[name]
        end

        def initialize(client)
          @client = client
          @protocol = HTTP2::Client.new
          @protocol.on(:frame) { |bytes| @client.write(bytes) }
          @protocol.on(:goaway) { |last| leave(last) }
          @protocol.send_connection_preface
        end

        # Returns true if the server takes no more requests on it.
        def ends? = !@last.nil?

        # Reads what has arrived before the end of the connection.
        def read_rest
          loop { @protocol << @client.socket.readpartial(65_536) }
        rescue EOFError, SystemCallError
          nil
        end

        # Returns true if the server has not taken this request, so that it may be sent again (RFC 9113 §6.8).
        def ignored?(answer) = ends? && answer.stream.id > @last

        # Sends a request; #wait adds the received parts to the response.
        def ask(fields, body = nil)
          stream = @protocol.new_stream
          answer = Answer.new(stream, nil, {}, [], "".b)
          stream.on(:headers) { |pairs| note(answer, pairs.to_h) }
          stream.on(:data) { |piece| answer.body << piece }
          stream.on(:close) { |code| answer.ended = code || :whole }
          stream.headers(fields, end_stream: body.nil?)
          stream.data(body) if body
          answer
        end

        # Receives until the block is true.
        def wait
          until yield
            raise Test::Waiting::Expired, "received nothing within #{Site::PATIENCE} s" unless @client.readable?(Site::PATIENCE)

            @protocol << @client.socket.readpartial(65_536)
          end
        rescue EOFError
          raise Test::HttpClient::CutOff, "the connection has ended"
        end

        private

        # The gem would drop the heads of the responses that still come.
        def leave(last)
          @last = last
          @protocol.instance_variable_set(:@state, :connected)
        end

        def note(answer, pairs)
          status = Integer(pairs.delete(":status"), 10)
          return answer.hints << pairs["link"] if status < 200

          answer.status = status
          answer.fields.update(pairs)
        end
      end

      # Several concurrent requests on one HTTP/2 connection, some of which are reset.
      class Streams < Client
        share 10
        DEEDS = %i[small small work hinted download upload file given_up].freeze

        # Most bytes of concurrent uploads: the gem adds the window of a stream to the connection's (RFC 9113 §6.9.2), and
        # would send more than the windows allow.
        UPLOADED = 100_000

        def run
          random.rand(1..4).times do
            @session = Session.new(connect) if @session.nil? || @session.ends?
            together
          end
        end

        private

        # Another worker may run the request, and be killed.
        def excused? = super || site.killed_since?(@began)

        def losses = super + [HTTP2::Error::Error]

        # 502 means that the worker with the request has died, as a reset does once the response has begun.
        def refuse(answer)
          raise Failed, "status 502" if answer.status == 502

          super
        end

        def together
          ask_together
          @deeds.each { |answer, check| check&.call(whole(answer)) }
        end

        def ask_together
          @budget = UPLOADED
          @deeds = []
          random.rand(1..pick(3, 30)).times { @deeds << send(pick(*DEEDS)) unless @session.ends? }
          @session.wait { @deeds.all? { |answer, _| answer.ended } }
        rescue HttpClient::CutOff, Errno::EPIPE, Errno::ECONNRESET
          raise unless ignored?

          raise Refused, "the session had ended"
        end

        # Returns true if the server has ended the session, and the responses that are missing belong to requests that came later.
        def ignored?
          @session.read_rest
          missing = @deeds.map(&:first).reject(&:ended)
          @session.ends? && missing.all? { |answer| @session.ignored?(answer) }
        end

        # The application has not seen a request on a refused stream (RFC 9113 §8.7).
        def whole(answer)
          raise Refused, "a refused stream" if answer.ended == :refused_stream && site.small?
          raise HttpClient::CutOff, "a stream was reset: #{answer.ended}" unless answer.ended == :whole

          answer
        end

        # Fields of a request.
        def fields(name, id, parameters, method: "GET")
          query = { "id" => format("%x", id), **parameters }.map { |pair| pair.join("=") }.join("&")
          @last = "#{name} #{parameters}"
          { ":method" => method, ":scheme" => "http", ":path" => "/#{name}?#{query}", ":authority" => "soak", "x-from" => @from }
        end

        def asked(name, parameters, size)
          id = new_id
          [@session.ask(fields(name, id, { "size" => size, **parameters })), ->(answer) { expect(answer, id, size) }]
        end

        def small = asked("small", {}, size(1, 5000))
        def work = asked("work", { "how" => pick("sleep", "compute", "lock"), "ms" => random.rand(1..30) }, 200)
        def download = asked("download", { "form" => pick("kept", *Download::FORMS) }, size(1, pick(5000, 100_000, 1_000_000)))

        def hinted
          answer, check = asked("hints", { "count" => 2 }, 50)
          [answer, ->(whole) { check.call(whole) && (whole.hints.size == 2 || raise(Pattern::Wrong, "hints #{whole.hints}")) }]
        end

        def upload
          id = new_id
          body = Pattern.bytes(id, size(1, [20_000, @budget].min))
          @budget -= body.bytesize - 1
          expected = "#{body.bytesize} #{Digest::SHA1.hexdigest(body)}"
          # The gem splits the body into frames.
          answer = @session.ask(fields("upload", id, { "how" => pick("read", "pieces") }, method: "POST"), body)
          [answer, lambda do |whole|
            expect_owner(whole, id)
            raise Pattern::Wrong, "uploaded #{expected}, arrived #{whole.body}" unless whole.body == expected
          end]
        end

        def file
          size = pick(*Files::SIZES[...-1]) # the gem is slow
          answer = @session.ask({ ":method" => "GET", ":scheme" => "http", ":path" => "/#{Files.name(size)}", ":authority" => "soak" })
          [answer, ->(whole) { whole.status == 200 ? Pattern.check(whole.body, Files.id(size), size) : refuse(whole) }]
        end

        # Resets the stream, at once or in the middle.
        def given_up
          answer, = pick(:work, :download).then { |deed| send(deed) }
          @session.wait { answer.ended || answer.status } if chance?(0.5)
          answer.stream.close(:cancel) unless answer.ended
          answer.ended ||= :cancel
          [answer, nil]
        end
      end
    end
  end
end
