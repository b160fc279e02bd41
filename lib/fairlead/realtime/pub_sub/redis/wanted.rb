# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # What the process has subscribed to, in the targets of Redis, and how much of it Redis has confirmed. A target is
      # [:channel, name] or [:pattern, glob]; two subscriptions may come down to the same one.
      #
      # Redis has no patterns of tokens. Their globs match a little more, and what is too much finds no subscriber here.
      class Wanted
        # What it is, and whether it is wanted => the command that says so.
        COMMANDS = {
          [:channel, true] => :subscribe, [:pattern, true] => :psubscribe,
          [:channel, false] => :unsubscribe, [:pattern, false] => :punsubscribe
        }.freeze

        def initialize
          @lock = Mutex.new
          @confirmed_more = ConditionVariable.new
          @targets = {}        # [name, match] => target
          @uses = Hash.new(0)  # target => how many of those
          @changed = {}        # target => true, where Redis may have to be told
          @told = {}           # target => true, to which Redis has been told to subscribe
          @confirmed = {}
        end

        # Returns the target for it.
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

        # What is still to be said to Redis, as one command at a time: [:subscribe, names], for example. Nil when there is
        # nothing.
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

        # A new connection knows nothing.
        def reset
          @lock.synchronize do
            @confirmed.clear
            @told.clear
            @changed = @uses.transform_values { true }
          end
        end

        # Waits until Redis has confirmed that target, for as long as the block is true and at most so many seconds.
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

        # Lets those who wait look again.
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
