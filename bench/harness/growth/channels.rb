# frozen_string_literal: true

require "net/http"

module Bench
  module Growth
    # n channels or patterns that belong to few event streams: the cost of a message to one of them, and of a subscription that comes and goes.
    class Channels
      CLIENTS = 10
      MESSAGES = 1000
      COMERS = 200

      # +name+: of the parameter of the application. +prefix+ and +suffix+: of each channel or pattern. +message+: of a message to the first.
      Kind = Struct.new(:name, :prefix, :suffix, :message, keyword_init: true)

      KINDS = [
        Kind.new(name: "channels", prefix: "c/", suffix: "", message: "channel=c/0"),
        Kind.new(name: "patterns", prefix: "p/", suffix: "/*", message: "channel=p/0/x")
      ].freeze

      def warm_up(target)
        figures(target, 10)
      end

      def figures(target, count)
        KINDS.reduce({}) { |found, kind| found.merge(of_kind(target, count, kind)) }
      end

      private

      def of_kind(target, count, kind)
        cost = Cost.new(target.running.group)
        clients = nil
        subscribing = cost.once(count) { clients = subscribe(target, count, kind) }
        {
          "to subscribe to one of n #{kind.name}, µs" => subscribing,
          "message to one of n #{kind.name}, µs" => cost.each(MESSAGES) { publish(target, kind.message) },
          "subscriber that comes and goes beside n #{kind.name}, µs" => cost.each(COMERS) { come_and_go(target, kind) },
          "memory of n #{kind.name}, MiB" => target.running.group.memory_kib / 1024.0,
          "to leave one of n #{kind.name}, µs" => cost.once(count) { clients.each(&:close) }
        }
      ensure
        clients&.each { |client| client.close unless client.closed? }
        cost&.wait_until_quiet
      end

      def subscribe(target, count, kind)
        each = count / CLIENTS
        Clients.open(CLIENTS) { |index| stream(target, kind, index * each, each) }
      end

      def come_and_go(target, kind)
        other = kind.dup.tap { |one| one.prefix = "other/" }
        Clients.open(COMERS) { |index| stream(target, other, index, 1) }.each(&:close)
      end

      def stream(target, kind, first, number)
        query = "#{kind.name}=#{kind.prefix}&suffix=#{kind.suffix}&first=#{first}&number=#{number}"
        Clients::Events.new(target, path: "/events?#{query}")
      end

      def publish(target, query)
        response = Net::HTTP.post(URI(target.running.url("/publish?#{query}&times=#{MESSAGES}")), "")
        raise Error, "publishing failed: #{response.code}" unless response.is_a?(Net::HTTPSuccess)
      end
    end
  end
end
