# frozen_string_literal: true

require "zlib"
require_relative "client"
require_relative "../../support/event_stream"
require_relative "../../support/web_socket"

module Fairlead
  module Soak
    module Clients
      # Base of the clients that stay connected.
      class RealTimeClient < Client
        def run
          talk
        rescue Test::WebSocket::Refused => e
          excuse(e.status)
        end

        private

        def mistakes = super + [Test::WebSocket::Malformed, Test::EventStream::Malformed]
        def losses = super + [Test::WebSocket::CutOff, Test::WebSocket::Closed, Test::EventStream::Ended]

        def web_socket(id, parameters = {}, **options)
          client = connect
          @last = "talk #{parameters} #{options}"
          query = { "id" => format("%x", id), **parameters }.map { |pair| pair.join("=") }.join("&")
          client = Test::WebSocket.over(client.socket, "/talk?#{query}", headers: { "x-from" => @from }, **options)
          expect_message(client, :text, "ready #{format("%x", id)}", id)
          client
        end

        def expect_message(client, type, data, id)
          got_type, got = client.receive(Site::PATIENCE)
          Pattern.check_owner(got, id, "message")
          return if got_type == type && got.b == data.b

          raise Pattern::Wrong, "#{got_type} of #{got.bytesize} bytes instead of #{type} of #{data.bytesize}: #{got[0, 60].inspect}"
        end
      end

      # A WebSocket that gets its messages back: text and binary, in one frame and in fragments, compressed or not, with
      # pings between them.
      class Echo < RealTimeClient
        share 8

        def talk
          id = new_id
          client = web_socket(id, chance?(0.2) ? { "later" => 1 } : {}, deflate: pick(true, false, "permessage-deflate; client_no_context_takeover"))
          random.rand(1..15).times { say(client, id) }
          leave(client)
        end

        private

        def say(client, id)
          return client.ping("p#{id}") && expect_pong(client, "p#{id}") if chance?(0.2)
          return burst(client, id) if chance?(0.1)

          type = pick(:text, :binary)
          data = Pattern.bytes(id, size(1, pick(500, 5000, 200_000)))
          chance?(0.3) ? send_fragments(client, type, data) : client.send_message(type, data)
          expect_message(client, type, data, id)
        end

        # Messages may come before the pong.
        def expect_pong(client, data)
          client.wait_for("a pong", Site::PATIENCE) { client.pongs.any? || client.over? }
          pong = client.pongs.shift or raise Test::WebSocket::CutOff, "the connection ended instead of a pong"
          raise Pattern::Mixed, "pong #{pong}" unless pong == data
        end

        def send_fragments(client, type, data)
          pieces = data.scan(/.{1,#{random.rand(1000..70_000)}}/mn)
          pieces.each_with_index do |piece, index|
            client.send_frame(index.zero? ? type : :continuation, piece, fin: index == pieces.size - 1)
            client.ping("between") && expect_pong(client, "between") if chance?(0.1)
          end
        end

        def burst(client, id)
          count = random.rand(1..20)
          client.send_text("/burst #{count} 300")
          count.times { |number| expect_message(client, :text, "#{number} #{Pattern.bytes(id, 300)}", id) }
        end

        def leave(client)
          case pick(:close, :asked, :drop, :reset)
          when :close
            client.close(1000)
            expect_close(client, 1000)
          when :asked
            client.send_text("/close")
            expect_close(client, 4000)
          when :drop then client.drop
          else client.drop(reset: true)
          end
        end

        def expect_close(client, code)
          got, = client.receive_close(Site::PATIENCE)
          raise Pattern::Wrong, "closed with #{got}" unless got == code
        end
      end

      # Messages that are small on the wire and too large when inflated.
      class Bomb < RealTimeClient
        share 2
        ZEROS = Zlib::Deflate.deflate("\0" * 20_000_000)[2...-4].freeze

        def talk
          client = web_socket(new_id, deflate: true)
          3.times { client.send_frame(:binary, ZEROS, rsv: 4) }
          code, = client.receive_close(Site::PATIENCE)
          raise Pattern::Wrong, "closed with #{code}" unless code == 1009
        rescue Errno::EPIPE, Errno::ECONNRESET
          nil # the server has closed before it had read them all
        end
      end

      # A client that reads less than it is sent: the server closes it, without an effect on the others.
      class Deaf < RealTimeClient
        share 2

        def talk
          client = web_socket(id = new_id)
          client.send_text("/burst 60 100000")
          sleep(random.rand * 0.5)
          return client.drop(reset: true) if chance?(0.3)

          heard(client, id)
        end

        private

        # Everything, or a part and then the close frame with the reason. With a small total it has to give way, without a close frame, if
        # it does not read while others need the memory.
        def heard(client, id)
          60.times { |number| expect_message(client, :text, "#{number} #{Pattern.bytes(id, 100_000)}", id) }
        rescue Test::WebSocket::CutOff
          raise unless site.gave_way?(@addresses)

          raise Refused, "it had to give way"
        rescue Test::WebSocket::Closed => e
          raise Pattern::Wrong, "closed with #{e.code}" unless e.code == 1013
        end
      end

      # Several clients of one channel, in any workers: each gets all of its messages, in order, and no others.
      class Channel < RealTimeClient
        share 4

        def talk
          id = new_id
          channel = format("c%x", id)
          listeners = Array.new(random.rand(1..4)) { listener(channel) }
          count = random.rand(1..15)
          size = size(1, pick(1000, 50_000))
          return unless publish(listeners, channel, count, size, id)

          listeners.each { |listener| hear(listener, count, size, id) }
        ensure
          listeners&.each { |listener| listener.socket.close }
        end

        private

        def listener(channel)
          id = new_id
          return events(id, channel) if chance?(0.3)

          web_socket(id, { "channel" => channel, "pattern" => pick("redis", "block", "plain") }, deflate: chance?(0.5))
        end

        def events(id, channel)
          client = connect
          client.write(request("talk", id, { "channel" => channel }, { "accept" => "text/event-stream" }))
          stream = Test::EventStream.new(client.socket)
          excuse(stream.status) unless stream.status == 200
          ready = stream.receive(Site::PATIENCE)
          raise Pattern::Mixed, ready.data unless ready.data == "ready #{format("%x", id)}"

          stream
        end

        # By a member of the channel, or by a request from elsewhere.
        def publish(listeners, channel, count, size, id)
          speaker = listeners.grep(Test::WebSocket).first
          return speaker.send_text("/publish #{channel} #{count} #{size} #{format("%x", id)}") if speaker && chance?(0.5)

          client = connect
          parameters = { "channel" => channel, "count" => count, "size" => size, "owner" => format("%x", id) }
          client.write(request("publish", asked = new_id, parameters))
          answer = client.final_answer
          expect_owner(answer, asked)
          answer.body == "sent" # else a mailbox was full, and the application was informed
        end

        def hear(listener, count, size, id)
          count.times do |number|
            expected = "#{number} #{Pattern.bytes(id, size)}"
            next expect_message(listener, :text, expected, id) if listener.is_a?(Test::WebSocket)

            event = listener.receive(Site::PATIENCE)
            Pattern.check_owner(event.data, id, "event")
            raise Pattern::Wrong, "event #{event.data[0, 60].inspect}" unless event.data == expected
          end
        end
      end
    end
  end
end
