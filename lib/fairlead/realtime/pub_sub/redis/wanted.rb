# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # What the process has subscribed to, in the words of Redis, and how much of it Redis has confirmed. A word is
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
          @words = {}          # [name, match] => word
          @uses = Hash.new(0)  # word => how many of those
          @changed = {}        # word => true, where Redis may have to be told
          @told = {}           # word => true, to which Redis has been told to subscribe
          @confirmed = {}
        end

        # Returns the word for it.
        def add(to, match)
          @lock.synchronize do
            @words[[to, match]] ||= word(to, match).tap do |word|
              @uses[word] += 1
              @changed[word] = true
            end
          end
        end

        def remove(to, match)
          @lock.synchronize do
            word = @words.delete([to, match]) or next
            @uses.delete(word) if (@uses[word] -= 1).zero?
            @changed[word] = true
          end
        end

        # What is still to be said to Redis, as one command at a time: [:subscribe, names], for example. Nil when there is
        # nothing.
        def next_command
          @lock.synchronize do
            @changed.delete_if { |word, _| @uses.key?(word) == @told.key?(word) }
            words = @changed.keys.group_by { |word| COMMANDS.fetch([word.first, @uses.key?(word)]) }
            command, same = words.first
            [command, same.each { |word| mark_told(word) }.map(&:last)] if command
          end
        end

        def confirm(word)
          @lock.synchronize do
            @confirmed[word] = true if @told.key?(word)
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

        # Waits until Redis has confirmed that word, for as long as the block is true and at most so many seconds.
        def wait_for(word, seconds)
          deadline = now + seconds
          @lock.synchronize do
            until @confirmed.key?(word) || !yield
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

        def mark_told(word)
          @changed.delete(word)
          @uses.key?(word) ? @told[word] = true : @told.delete(word)
          @confirmed.delete(word)
        end

        def word(to, match)
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
