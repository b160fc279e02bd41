# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # What this process wants to be subscribed to at Redis, and what Redis has confirmed. An entry is what Redis knows:
      # [:channel, name] or [:pattern, glob]. Two subscriptions may have the same entry.
      #
      # Redis has no patterns of tokens, so they become globs. These match a little more; messages that match no
      # subscription are dropped here.
      class Wanted
        # The kind of entry, and whether it is wanted => the command for Redis.
        COMMANDS = {
          [:channel, true] => :subscribe, [:pattern, true] => :psubscribe,
          [:channel, false] => :unsubscribe, [:pattern, false] => :punsubscribe
        }.freeze

        def initialize
          @lock = Mutex.new
          @confirmed_more = ConditionVariable.new
          @entries = {} # [name, match] => entry
          @uses = Hash.new(0) # entry => the number of subscriptions that have it
          @changed = {} # entry => true, if Redis may have to be told
          @told = {} # entry => true, if Redis has been told to subscribe
          @confirmed = {} # entry => true, if Redis has confirmed it
        end

        # Adds a subscription and returns its entry.
        def add(to, match)
          @lock.synchronize do
            @entries[[to, match]] ||= entry(to, match).tap do |entry|
              @uses[entry] += 1
              @changed[entry] = true
            end
          end
        end

        def remove(to, match)
          @lock.synchronize do
            entry = @entries.delete([to, match]) or next
            @uses.delete(entry) if (@uses[entry] -= 1).zero?
            @changed[entry] = true
          end
        end

        # The next command that Redis needs, for example [:subscribe, names]; nil if there is none.
        def next_command
          @lock.synchronize do
            @changed.delete_if { |entry, _| @uses.key?(entry) == @told.key?(entry) }
            entries = @changed.keys.group_by { |entry| COMMANDS.fetch([entry.first, @uses.key?(entry)]) }
            command, same = entries.first
            [command, same.each { |entry| mark_told(entry) }.map(&:last)] if command
          end
        end

        def confirm(entry)
          @lock.synchronize do
            @confirmed[entry] = true if @told.key?(entry)
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

        # Waits until Redis has confirmed +entry+, for +seconds+ at most, and only while the block returns true.
        def wait_for(entry, seconds)
          deadline = now + seconds
          @lock.synchronize do
            until @confirmed.key?(entry) || !yield
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

        def mark_told(entry)
          @changed.delete(entry)
          @uses.key?(entry) ? @told[entry] = true : @told.delete(entry)
          @confirmed.delete(entry)
        end

        def entry(to, match)
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
