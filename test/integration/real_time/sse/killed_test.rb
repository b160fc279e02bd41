# frozen_string_literal: true

require "test_helper"
require "support/kept_messages"

# A killed worker loses its event streams. They come back at different times, and continue where they were cut off.
class KilledEventStreamsTest < Minitest::Test
  include Fairlead::Test::KeptMessages

  HANDLER = <<~'RUBY'
    def on_open(client)
      client.subscribe("room", since: client.env["HTTP_LAST_EVENT_ID"] || Fairlead::PubSub.position)
      client.write("open")
    end
  RUBY
  STREAMS = 16

  def test_clients_of_a_killed_worker_come_back_and_lose_nothing
    server = pushing(HANDLER, "-w", 2, "-t", 2)
    streams = Array.new(STREAMS) { event_stream(server).tap(&:receive) }
    heard = streams.map { [] }
    requested(server, publish(*"0".."19"))
    streams.each_with_index { |stream, index| read(server, stream, heard[index], 20) }
    victim = server.worker_pids.first
    Process.kill(:KILL, victim)
    wait_until("its end") { server.worker_pids.none?(victim) }
    requested(server, publish(*"20".."39"))
    again = streams.each_with_index.map { |stream, index| read(server, stream, heard[index], 40) }

    assert_equal [("0".."39").map(&:inspect)], heard.uniq
    refute_equal streams, again, "some were cut off"
    assert_spread (streams | again).map(&:reconnection_time)
  end

  def test_the_application_may_set_another_time
    stream = event_stream(pushing("def on_open(client) = client.write('open', retry: 60_000)"))
    stream.receive

    assert_equal 60_000, stream.reconnection_time
  end

  private

  # Reads until there are +count+ messages. Reconnects like a browser, except that it does not wait. Returns the last stream.
  def read(server, stream, heard, count)
    while heard.size < count
      begin
        data = stream.receive.data
        heard << data unless data == "open"
      rescue Fairlead::Test::EventStream::Ended
        stream = event_stream(server, headers: { "last-event-id" => stream.last_event_id })
      end
    end
    stream
  end

  def assert_spread(times)
    assert times.all?(1000..5000), times.inspect
    assert_operator times.uniq.size, :>, times.size / 3, "they come back at different times"
  end
end
