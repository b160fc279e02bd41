# frozen_string_literal: true

require "set"
require_relative "real_time"

module Fairlead
  module Soak
    module Clients
      # WebSockets and event streams that stay for a while, through restarts and other workers' ends, and two publishers that number
      # their messages. Each listener gets each message once, and the messages from one worker in order.
      class Series < Channel
        share 1

        # Seconds for which they stay, and the longest pause between two messages.
        STAY = (2.0..25.0)
        PAUSE = 0.2

        # A listener, its address, and the numbers of the messages that it got from each publisher.
        Heard = Struct.new(:listener, :address, :numbers, :last)

        # A publisher: its id, its connection and address, and the numbers of the messages that it has published without doubt.
        Publisher = Struct.new(:id, :client, :from, :published, :numbered)

        def talk
          @channel = format("s%x", new_id)
          @heard = Array.new(random.rand(2..5)) { Heard.new(listener(@channel), @addresses.last, {}, {}) }
          @publishers = Array.new(2) { Publisher.new(new_id, connect, @from, [], 0) }
          finish = Test::Waiting.monotonic + random.rand(STAY)
          publish_one(@publishers.sample(random: random)) while Test::Waiting.monotonic < finish && site.running? && !site.spoiled
          @heard.each { |heard| hear_all(heard) }
        ensure
          @heard&.each { |heard| heard.listener.socket.close }
        end

        private

        # If the response is missing because a process was killed, nobody knows about the message.
        def publish_one(publisher)
          number = publisher.numbered += 1
          @from = publisher.from
          publisher.client.write(request("number", asked = new_id, number_parameters(publisher, number)))
          answer = publisher.client.final_answer
          expect_owner(answer, asked)
          publisher.published << number if answer.body == "sent"
          sleep(random.rand * PAUSE)
        rescue *losses
          raise unless excused?

          publisher.client = connect
          publisher.from = @from
        end

        def number_parameters(publisher, number)
          { "channel" => @channel, "number" => number, "owner" => format("%x", publisher.id), "size" => size(Pattern::MARK_BYTES, 2000) }
        end

        # Everything that was published without doubt. The end of a listener is excused if its worker was killed.
        def hear_all(heard)
          hear_one(heard) until @publishers.all? { |publisher| lacking(heard, publisher).empty? }
        rescue Test::Waiting::Expired
          raise Pattern::Wrong, "#{heard.listener.class.name[/\w+\z/]} #{heard.address}: #{lost(heard)}"
        rescue *losses
          raise unless site.taken?(heard.address) || site.left_behind?(heard.address) || site.alone_and_restarted_since?(@began)
        end

        def hear_one(heard)
          message = heard.listener.receive(Site::PATIENCE / 2)
          text = message.respond_to?(:data) ? message.data : message.last
          number, process, bytes = text.b.split(" ", 3)
          publisher = @publishers.find { |one| bytes&.start_with?(format("<%012x.", one.id)) }
          raise Pattern::Mixed, "message #{text[0, 60].inspect}" unless publisher

          Pattern.check(bytes, publisher.id, bytes.bytesize, "message")
          note(heard, publisher, Integer(number, 10), process)
        end

        def note(heard, publisher, number, process)
          numbers = heard.numbers[publisher.id] ||= Set.new
          raise Pattern::Wrong, "message #{number} of #{process} came twice" unless numbers.add?(number)

          source = [publisher.id, process]
          raise Pattern::Wrong, "message #{number} of #{process} came after #{heard.last[source]}" if heard.last.fetch(source, 0) > number

          heard.last[source] = number
        end

        def lacking(heard, publisher) = publisher.published.reject { |number| heard.numbers[publisher.id]&.include?(number) }

        def lost(heard)
          @publishers.map do |publisher|
            missing = lacking(heard, publisher)
            "lost #{missing.size} of #{publisher.published.size}, #{missing.first(5)}"
          end.join("; ")
        end
      end
    end
  end
end
