# frozen_string_literal: true

module Fairlead
  module PubSub
    class NATS
      # The connection that receives messages. NATS sends one for each matching subscription.
      class Listening
        # Number of messages that are remembered, to recognise their copies.
        RECENT = 1_000

        def initialize(session, subjects, listener)
          @session = session
          @subjects = subjects
          @listener = listener
          @subscriptions = {} # subject => subscription of the gem
          @fences = Thread::Queue.new # number of confirmations for each
          @recent = {}
          @repetitions = Broker::Repetitions.new
          session.on_problem { |error| note(error) }
        end

        def tell(batch)
          case batch.verb
          when :subscribe then batch.names.each { |name| @subscriptions[name] ||= @session.subscribe(name) }
          when :unsubscribe then batch.names.each { |name| @subscriptions.delete(name)&.unsubscribe }
          end
          @fences << batch.items.size
          @session.fence
        end

        def receive(seconds)
          message = @session.pop(seconds) or return false
          @session.fence?(message) ? @fences.pop.times { @listener.confirmed } : take(message)
          true
        end

        def break_off = @session.break_off
        def close = @session.close

        private

        def note(error)
          return @listener.rejected([:subject, error.subject.b], error) if error.is_a?(Client::Violation)

          @listener.missed(1, "this process does not take them fast enough")
        end

        def take(message)
          channel = channel(message) or return
          @listener.deliver(channel, message.data.b) unless copy?(message, channel)
        end

        def channel(message)
          return @subjects.channel(message.subject) unless @subjects.digest?(message.subject)

          name = message.header && message.header[Sender::CHANNEL]
          name && @subjects.unescape(name)
        end

        # Messages of other programs have no reply subject that is different for each.
        def copy?(message, channel)
          id = message.reply
          return @repetitions.copy?(message.sub, channel, message.data) if id.nil? || id.empty?
          return true if @recent.key?(id)

          @recent.shift if @recent.size >= RECENT
          @recent[id] = true
          false
        end
      end
    end
  end
end
