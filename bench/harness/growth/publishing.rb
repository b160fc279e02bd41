# frozen_string_literal: true

module Bench
  module Growth
    # n event streams with subscriptions (bench/apps/growth.ru): to all the same channel, to a channel of each, or to a pattern of each. The
    # cost of a message, and of a subscriber that comes and goes.
    class Publishing
      # Messages to all, one after another: several at once would share writes.
      MESSAGES = 10
      # Messages in a batch that only one subscriber gets.
      SINGLE = 200
      COMERS = 200

      # Query of a subscriber, query of the publisher, and the name of the figure.
      POPULATIONS = {
        "message to n subscribers, for each, µs" => [->(_) { "channel=all" }, "channel=all"],
        "message to one of n channels, µs" => [->(index) { "channel=c/#{index}" }, "channel=c/0"],
        "message to one of n patterns, µs" => [->(index) { "pattern=p/#{index}/*" }, "channel=p/0/x"]
      }.freeze

      def warm_up(target)
        figures(target, 10)
      end

      def figures(target, count)
        POPULATIONS.reduce({}) do |found, (name, (subscriber, publisher))|
          found.merge(population(target, count, subscriber) { |cost, clients| message(target, cost, clients, name, publisher) })
        end
      end

      private

      def population(target, count, subscriber)
        cost = Cost.new(target.running.group)
        clients = subscribe(target, count, subscriber)
        yield(cost, clients)
      ensure
        clients&.each(&:close)
        cost&.wait_until_quiet
      end

      def message(target, cost, clients, name, publisher)
        Clients.check(clients) # reads what has come
        each = publisher == "channel=all" ? to_all(target, cost, clients, publisher) : cost.each(SINGLE) { publish(target, publisher, SINGLE) }
        comer = "subscriber that comes and goes beside n #{name[/subscribers|channels|patterns/]}, µs"
        { name => each, comer => comers(target, cost, publisher) }
      end

      def to_all(target, cost, clients, publisher)
        cost.each(MESSAGES * clients.size) do
          MESSAGES.times do
            publish(target, publisher, 1)
            cost.wait_until_quiet
          end
        end
      end

      def comers(target, cost, publisher)
        kind = publisher.start_with?("channel=p") ? "pattern=q/%d/*" : "channel=d/%d"
        cost.each(COMERS) { subscribe(target, COMERS, ->(index) { format(kind, index) }).each(&:close) }
      end

      def subscribe(target, count, subscriber)
        Clients.open(count) { |index| Clients::Events.new(target, path: "/events?#{subscriber.call(index)}") }
      end

      def publish(target, query, times)
        response = Net::HTTP.post(URI(target.running.url("/publish?#{query}&times=#{times}")), "")
        raise Error, "publishing failed: #{response.code}" unless response.is_a?(Net::HTTPSuccess)
      end
    end
  end
end
