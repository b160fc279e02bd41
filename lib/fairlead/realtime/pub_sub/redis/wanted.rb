# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # What this process wants to be subscribed to at Redis, and what Redis has confirmed. A target is what Redis knows:
      # [:channel, name] or [:pattern, glob]. Two subscriptions may have the same target.
      #
      # Redis has no patterns of tokens, so they become globs. These match a little more; messages that match no
      # subscription are dropped here.
      class Wanted
        # The kind of target, and whether it is wanted => the command for Redis.
        COMMANDS = {
          [:channel, true] => :subscribe, [:pattern, true] => :psubscribe,
          [:channel, false] => :unsubscribe, [:pattern, false] => :punsubscribe
        }.freeze

        def initialize
          @lock = Mutex.new
          @confirmed_more = ConditionVariable.new
          @targets = {} # [name, match] => target
          @uses = Hash.new(0) # target => the number of subscriptions that have it
          @changed = {} # target => true, if Redis may have to be told
          @told = {} # target => true, if Redis has been told to subscribe
          @confirmed = {} # target => true, if Redis has confirmed it
        end

        # Adds a subscription and returns its target.
        def add(to, match)
          @lock.synchronize do
            @targets[[to, match]] ||= target(to, match).tap do |target|
              @uses[target] += 1
              @changed[target] = true
            end
          end
        end

        def remove(to, match)
          @lock.synchronize do
            target = @targets.delete([to, match]) or next
            @uses.delete(target) if (@uses[target] -= 1).zero?
            @changed[target] = true
          end
        end

        # The next command that Redis needs, for example [:subscribe, names]; nil if there is none.
        def next_command
          @lock.synchronize do
            @changed.delete_if { |target, _| @uses.key?(target) == @told.key?(target) }
            targets = @changed.keys.group_by { |target| COMMANDS.fetch([target.first, @uses.key?(target)]) }
            command, same = targets.first
            [command, same.each { |target| mark_told(target) }.map(&:last)] if command
          end
        end

        def confirm(target)
          @lock.synchronize do
            @confirmed[target] = true if @told.key?(target)
            @confirmed_more.broadcast
          end
        end

        # Starts over, for a new connection.
        def reset
          @lock.synchronize do
            @confirmed.clear
            @told.clear
            @changed = @uses.transform_values { true }
          end
        end

        # Waits until Redis has confirmed +target+, for +seconds+ at most, and only while the block returns true.
        def wait_for(target, seconds)
          deadline = now + seconds
          @lock.synchronize do
            until @confirmed.key?(target) || !yield
              rest = deadline - now
              break unless rest.positive?

              @confirmed_more.wait(@lock, rest)
            end
          end
        end

        # Makes waiting threads call their block again.
        def interrupt
          @lock.synchronize { @confirmed_more.broadcast }
        end

        private

        def mark_told(target)
          @changed.delete(target)
          @uses.key?(target) ? @told[target] = true : @told.delete(target)
          @confirmed.delete(target)
        end

        def target(to, match)
          case match
          when nil then [:channel, to]
          when :redis then [:pattern, to]
          when :subject then [:pattern, glob(to)]
          end
        end

        def glob(subject)
          subject.gsub(/[\[\]?\\]/n) { |special| "\\#{special}" }.sub(/(\A|\.)>\z/n, "\\1*")
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
