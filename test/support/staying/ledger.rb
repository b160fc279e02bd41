# frozen_string_literal: true

require "set"

module Fairlead
  module Test
    class Staying
      # The publications that a client has received: CHANNEL SOURCE NUMBER TIME. Numbers of one channel and one kind of source
      # (`worker-4711` is of the kind `worker`) begin at 1. Numbers of one source come in order.
      class Ledger
        def initialize
          @begun = {}
          @numbers = Hash.new { |numbers, stream| numbers[stream] = Set.new }
          @last = Hash.new(0)
          @repeated = []
          @disordered = []
          @delays = []
        end

        # The client hears everything from now on. +begun+: kind of source => the last number that it may have published before.
        def begin(begun) = @begun = begun

        def record(text, now)
          channel, source, number, sent = text.split
          number = number.to_i
          @delays << (now - sent.to_f)
          return @repeated << text unless @numbers[[channel, source[/\A\w+/]]].add?(number)

          @disordered << text if @last[[channel, source]] > number
          @last[[channel, source]] = number
        end

        # Number of messages, each counted once.
        def size = @numbers.values.sum(&:size)

        def take_delays = @delays.slice!(0..)

        # +published+: [channel, kind] => numbers that each client must have.
        def lost(published)
          published.filter_map do |(channel, kind), numbers|
            expected = numbers.select { |number| number > @begun.fetch(kind, 0) }
            missing = expected.reject { |number| @numbers[[channel, kind]].include?(number) }
            "lost #{missing.size} of #{expected.size} #{channel} #{kind}: #{missing.first(5).inspect}" if missing.any?
          end
        end

        # Lines about messages that came twice, or in the wrong order.
        def wrong
          { "repeated" => @repeated, "out of order" => @disordered }.filter_map do |what, texts|
            "#{texts.size} #{what}: #{texts.first(3).inspect}" if texts.any?
          end
        end
      end
    end
  end
end
