# frozen_string_literal: true

require "logger"
require "net/http"
require "stringio"

module Fairlead
  module Test
    class Staying
      # Threads that publish on both channels: requests to workers, and messages through the publish socket. The requests are page
      # requests, too: each must get its response.
      class Publishers
        include Waiting

        CHANNELS = %w[mail kept].freeze

        def initialize(server, rate)
          @server = server
          @pause = 1.0 / rate
          @published = Hash.new { |published, stream| published[stream] = [] }
          @begun = Hash.new(0)
          @faults = []
          @lock = Mutex.new
          @log = StringIO.new
        end

        def start
          outside = PubSub::RunningServer.new(@server.path("tmp/sockets/fairlead.sock"), logger: Logger.new(@log))
          ways = { "worker" => method(:publish_in_worker), "outside" => ->(*message) { publish_outside(outside, *message) } }
          @threads = ways.map { |kind, way| Thread.new { publish_all(kind, way) } }
        end

        def stop
          @stopping = true
          @threads&.each(&:value)
        end

        # [channel, kind of source] => numbers
        def published = @lock.synchronize { @published.transform_values(&:dup) }

        # kind of source => the last number that is published, or being published
        def begun = @lock.synchronize { @begun.dup }

        # Lines about failed requests and messages.
        def faults = @faults.dup

        private

        # A message that failed may have reached some.
        def publish_all(kind, way)
          number = 0
          until @stopping
            number += 1
            @lock.synchronize { @begun[kind] = number }
            CHANNELS.each do |channel|
              is_published = way.call(channel, number, monotonic)
              @lock.synchronize { is_published ? @published[[channel, kind]] << number : @faults << "#{kind} has not published #{channel} #{number}" }
            end
            sleep(@pause)
          end
        end

        # Like a browser, it opens another connection when the server has closed one between two responses.
        def publish_in_worker(channel, number, time)
          @http ||= Net::HTTP.start("127.0.0.1", @server.port, max_retries: 0)
          response = @http.get("/publish?#{channel}+#{number}+#{time}")
          @http = nil if response["connection"] == "close"
          response.code == "200"
        rescue SystemCallError, IOError, Timeout::Error => e
          @http = nil
          @faults << "a request failed: #{e.class} #{e.message}"
          false
        end

        def publish_outside(outside, channel, number, time)
          outside.publish(channel, "#{channel} outside #{number} #{time}", history: channel == "kept")
        end
      end
    end
  end
end
