# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # The subscriptions that this process wants at Redis, and the ones that Redis has confirmed. An entry is a subscription in
      # Redis' form: [:channel, name] or [:pattern, glob]. Two of our subscriptions may have the same entry. No method becomes
      # slower with their number, except #reset.
      #
      # Redis has no patterns of tokens, so they become globs. These match a little more; messages that match no subscription
      # are dropped here.
      class Wanted
        # The kind of entry, and true if it is wanted => the command for Redis.
        COMMANDS = {
          [:channel, true] => "SUBSCRIBE", [:pattern, true] => "PSUBSCRIBE",
          [:channel, false] => "UNSUBSCRIBE", [:pattern, false] => "PUNSUBSCRIBE"
        }.freeze

        PING = ["PING"].freeze

        # Most names in one command.
        BATCH = 200

        # A command that has not got all of its replies, one for each entry.
        Sent = Struct.new(:batch, :confirmed)

        def initialize
          @lock = Mutex.new
          @more_to_say = ConditionVariable.new
          @more_confirmed = ConditionVariable.new
          @entries = {} # [name, match] => entry
          @uses = Hash.new(0) # entry => the number of subscriptions that have it
          forget_connection
        end

        # Adds a subscription.
        def add(to, match)
          @lock.synchronize do
            @entries[[to, match]] ||= entry(to, match).tap do |entry|
              @uses[entry] += 1
              changed(entry)
            end
          end
        end

        def remove(to, match)
          @lock.synchronize do
            entry = @entries.delete([to, match]) or next
            next unless (@uses[entry] -= 1).zero?

            @uses.delete(entry)
            @awaited.delete(entry)
            changed(entry)
          end
        end

        # The connection and the next command that Redis needs, for example ["SUBSCRIBE", name, …]. Waits until there is a
        # command; after +seconds+ it is PING.
        def next_command(seconds)
          @lock.synchronize do
            deadline = Clock.now + seconds
            until (command = @connection && (take_command || (ping if Clock.now >= deadline)))
              @more_to_say.wait(@lock, @connection && (deadline - Clock.now))
            end
            [@connection, command]
          end
        end

        # Redis has replied to the oldest command, or confirmed its next entry.
        def confirm
          @lock.synchronize do
            sent = @sent.first or raise(IOError, "Redis sent what no command asked for")
            entry = sent.batch[sent.confirmed]
            sent.confirmed += 1
            @sent.shift if sent.confirmed >= sent.batch.size
            settle(entry) if entry == PING || @told[entry].equal?(sent)
          end
        end

        # Redis has refused the oldest command. If it was for several entries, each of them is tried alone. Otherwise the block
        # is called with the name, and the entry counts as confirmed, since nothing more will come. The refusal of a PING is a
        # sign of life, too.
        def refuse
          refused = @lock.synchronize do
            sent = @sent.shift or raise(IOError, "Redis refused what no command asked for")
            next settle(sent.batch.first) if sent.batch.size == 1

            sent.batch.each { |entry| try_alone(entry, sent) }
            @more_to_say.signal
            nil
          end
          yield refused.last if refused && refused != PING
        end

        # Starts over, with a new connection.
        def reset(connection)
          @lock.synchronize do
            forget_connection
            @uses.each_key { |entry| @changed[entry.first][entry] = @awaited[entry] = true }
            @awaited[PING] = true
            @connection = connection
            @more_to_say.signal
          end
        end

        # True if Redis has confirmed all entries that were wanted when the connection was made.
        def recovered? = @awaited.empty?

        # Waits until Redis has confirmed a subscription, for +seconds+ at most, and only while the block returns true.
        def wait_for(to, match, seconds)
          deadline = Clock.now + seconds
          @lock.synchronize do
            until !(entry = @entries[[to, match]]) || @confirmed.key?(entry) || !yield
              rest = deadline - Clock.now
              break unless rest.positive?

              @more_confirmed.wait(@lock, rest)
            end
          end
        end

        # The connection has ended. Makes waiting threads call their block again.
        def disconnect
          @lock.synchronize do
            @connection = nil
            @more_confirmed.broadcast
          end
        end

        private

        def forget_connection
          @changed = { channel: {}, pattern: {} } # entry => true, if Redis may have to be told
          @told = {} # entry => the command that told Redis to subscribe
          @confirmed = {} # entry => true
          @alone = {} # entry => true, if it needs a separate command
          @awaited = {} # entries to confirm until the new connection is as good as the last
          @sent = [] # commands without all of their replies, the oldest first
        end

        def changed(entry)
          @changed[entry.first][entry] = true
          @more_to_say.signal
        end

        def ping
          @sent << Sent.new([PING], 0)
          PING
        end

        def take_command
          return ping if @awaited.key?(PING) && @sent.empty?

          @changed.each_value do |entries|
            wanted, batch = take_batch(entries)
            next if batch.empty?

            sent = Sent.new(batch, 0)
            @sent << sent
            batch.each { |entry| mark_told(entry, sent) if wanted }
            return [COMMANDS.fetch([batch.first.first, wanted]), *batch.map(&:last)]
          end
          nil
        end

        # Takes entries of the same kind that are all wanted, or all not.
        def take_batch(entries)
          wanted = nil
          batch = []
          while batch.size < BATCH && (entry, = entries.first)
            is_wanted = @uses.key?(entry)
            next entries.delete(entry) if is_wanted == @told.key?(entry)
            break if batch.any? && (is_wanted != wanted || @alone.key?(entry))

            wanted = is_wanted
            batch << entry
            entries.delete(entry)
            forget(entry) unless wanted
            break if @alone.key?(entry)
          end
          [wanted, batch]
        end

        def mark_told(entry, sent)
          @told[entry] = sent
          @confirmed.delete(entry)
        end

        def forget(entry)
          @told.delete(entry)
          @confirmed.delete(entry)
          @awaited.delete(entry)
        end

        def try_alone(entry, sent)
          return unless @told[entry].equal?(sent)

          @told.delete(entry)
          @alone[entry] = true
          @changed[entry.first][entry] = true
        end

        # Returns the entry.
        def settle(entry)
          @confirmed[entry] = true unless entry == PING
          @awaited.delete(entry)
          @more_confirmed.broadcast
          entry
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
      end
    end
  end
end
