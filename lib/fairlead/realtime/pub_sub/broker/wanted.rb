# frozen_string_literal: true

module Fairlead
  module PubSub
    class Broker
      # The subscriptions that this process wants at the broker, and the ones that the broker has confirmed. An entry is a
      # subscription in the broker's form: [kind, name], for example [:channel, "news"]. Several of our subscriptions may have the
      # same entry. No method becomes slower with their number, except #reset.
      class Wanted
        PING = [:ping].freeze

        # Most names in one batch.
        BATCH = 200

        # A message for the broker, without all of its replies: one for each item, an entry or PING. +verb+: :subscribe, :unsubscribe or :ping.
        Batch = Struct.new(:verb, :items, :confirmed) do
          def kind = items.first.first
          def names = items.map(&:last)
        end

        def initialize
          @lock = Mutex.new
          @more_to_say = ConditionVariable.new
          @more_confirmed = ConditionVariable.new
          @entries = {} # subscription => entry
          @uses = Hash.new(0) # entry => the number of subscriptions that have it
          @rejected = {} # entry => true, if the broker does not permit it
          forget_connection
        end

        # Adds a subscription, any object.
        def add(subscription, entry)
          @lock.synchronize do
            @entries[subscription] ||= entry.tap do
              @uses[entry] += 1
              changed(entry)
            end
          end
        end

        def remove(subscription)
          @lock.synchronize do
            entry = @entries.delete(subscription) or next
            next unless (@uses[entry] -= 1).zero?

            @uses.delete(entry)
            @rejected.delete(entry)
            @awaited.delete(entry)
            changed(entry)
          end
        end

        # The connection and the next batch that the broker needs. Waits until there is one; after +seconds+ it is a ping.
        def next_batch(seconds)
          @lock.synchronize do
            deadline = Clock.now + seconds
            until (batch = @connection && (take_batch || (ping if Clock.now >= deadline)))
              @more_to_say.wait(@lock, @connection && (deadline - Clock.now))
            end
            [@connection, batch]
          end
        end

        # The broker has replied to the oldest batch, or confirmed its next entry.
        def confirm
          @lock.synchronize do
            sent = @sent.first or raise(IOError, "the broker sent what no command asked for")
            entry = sent.items[sent.confirmed]
            sent.confirmed += 1
            @sent.shift if sent.confirmed >= sent.items.size
            settle(entry) if entry == PING || @told[entry].equal?(sent)
          end
        end

        # The broker has refused the oldest batch. If it was for several entries, each of them is tried alone. Otherwise the block
        # is called with the name, and the entry counts as confirmed, since nothing more will come. The refusal of a ping is a
        # sign of life, too.
        def refuse
          refused = @lock.synchronize do
            sent = @sent.shift or raise(IOError, "the broker refused what no command asked for")
            next settle(sent.items.first) if sent.items.size == 1

            sent.items.each { |entry| try_alone(entry, sent) }
            @more_to_say.signal
            nil
          end
          yield refused.last if refused && refused != PING
        end

        # The broker does not permit the entry. It counts as confirmed, and no later connection tells the broker of it.
        def reject(entry)
          is_new = @lock.synchronize do
            next if @rejected.key?(entry) || !@uses.key?(entry)

            @rejected[entry] = true
            settle(entry)
          end
          yield entry.last if is_new
        end

        # Starts over, with a new connection.
        def reset(connection)
          @lock.synchronize do
            forget_connection
            @uses.each_key { |entry| @changed[entry.first][entry] = @awaited[entry] = true unless @rejected.key?(entry) }
            @awaited[PING] = true
            @connection = connection
            @more_to_say.signal
          end
        end

        # True if the broker has confirmed all entries that were wanted when the connection was made.
        def recovered? = @awaited.empty?

        # Waits until the broker has confirmed a subscription, for +seconds+ at most, and only while the block returns true.
        def wait_for(subscription, seconds)
          deadline = Clock.now + seconds
          @lock.synchronize do
            until !(entry = @entries[subscription]) || settled?(entry) || !yield
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

        def settled?(entry) = @confirmed.key?(entry) || @rejected.key?(entry)

        def forget_connection
          @changed = Hash.new { |all, kind| all[kind] = {} } # kind => entry => true, if the broker may have to be told
          @told = {} # entry => the batch that told the broker to subscribe
          @confirmed = {} # entry => true
          @alone = {} # entry => true, if it needs a separate batch
          @awaited = {} # entries to confirm until the new connection is as good as the last
          @sent = [] # batches without all of their replies, the oldest first
        end

        def changed(entry)
          @changed[entry.first][entry] = true
          @more_to_say.signal
        end

        def ping = Batch.new(:ping, [PING], 0).tap { |batch| @sent << batch }

        def take_batch
          return ping if @awaited.key?(PING) && @sent.empty?

          @changed.each_value do |changed|
            wanted, entries = take_entries(changed)
            next if entries.empty?

            batch = Batch.new(wanted ? :subscribe : :unsubscribe, entries, 0)
            @sent << batch
            entries.each { |entry| mark_told(entry, batch) if wanted }
            return batch
          end
          nil
        end

        # Takes entries of the same kind that are all wanted, or all not.
        def take_entries(changed)
          wanted = nil
          entries = []
          while entries.size < BATCH && (entry, = changed.first)
            is_wanted = @uses.key?(entry) && !@rejected.key?(entry)
            next changed.delete(entry) if is_wanted == @told.key?(entry)
            break if entries.any? && (is_wanted != wanted || @alone.key?(entry))

            wanted = is_wanted
            entries << entry
            changed.delete(entry)
            forget(entry) unless wanted
            break if @alone.key?(entry)
          end
          [wanted, entries]
        end

        def mark_told(entry, batch)
          @told[entry] = batch
          @confirmed.delete(entry)
        end

        def forget(entry)
          @told.delete(entry)
          @confirmed.delete(entry)
          @awaited.delete(entry)
        end

        def try_alone(entry, batch)
          return unless @told[entry].equal?(batch)

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
      end
    end
  end
end
