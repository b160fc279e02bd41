# frozen_string_literal: true

require "json"
require "securerandom"

module Fairlead
  module Cable
    module Presence
      # Keeps the Members of this process up to date: tells the other processes about its own sessions, and hears of theirs. A process
      # takes part once one of its clients has a stream.
      class Exchange
        CHANNEL = "fairlead/cable/presence"

        # Seconds between two signs of life, and until all other processes have told what they know.
        BEAT = 5
        ANSWERS = 0.5

        # Seconds for which other processes' members are no news after the start. Members who come back to this process are none for
        # as long as they may be away: their clients were told by another process.
        NO_NEWS = 5
        NO_RETURNS = Members::TTL

        # Sessions in one message.
        BATCH = 200

        class << self
          # The Exchange of this process.
          def current
            @lock.synchronize { @current ||= new.tap(&:start) }
          end
        end
        @lock = Mutex.new

        def initialize
          @process = SecureRandom.hex(8)
          @lock = Monitor.new
          @members = Members.new { |*change| announce(*change) }
          @begun = @expired = clock
        end

        def start
          PubSub.registry.subscribe(PubSub::Subscription.new(CHANNEL, callable: ->(_, text) { receive(*JSON.parse(text)) }, owner: :presence))
          tell("ask")
          Fairlead.run_every(1) { @lock.synchronize { expire(clock) } }
          Fairlead.run_every(BEAT) { tell("alive") if own? }
        end

        # +returns+: with the session of a former connection.
        def join(sid, stream, id, info, returns) = tell("join", sid, stream, id, info, returns)

        def leave(sid, stream) = tell("leave", sid, stream)

        def ended(sid) = tell("ended", sid)

        # The client of the session goes to another process, which tells the same session again.
        def moved(sid) = tell("moved", sid)

        # The id and the info of a session's member in a stream, or nil.
        def member(sid, stream) = @lock.synchronize { @members.member(sid, stream) }

        # The members of a stream: id => info.
        def of(stream) = @lock.synchronize { @members.of(stream) }

        def full? = @lock.synchronize { @members.full? }

        # Seconds until this process knows all members.
        def wait = [@begun + ANSWERS - clock, 0].max

        private

        def own? = @lock.synchronize { @members.from?(@process) }

        def tell(kind, *details) = PubSub.registry.publish(CHANNEL, JSON.generate([kind, @process, *details]), nil)

        def expire(now)
          @members.stopped(now) if now - @expired > BEAT
          @members.alive(@process, now)
          @members.expire(@expired = now)
        end

        def receive(kind, process, *details)
          return answer if kind == "ask" && process != @process

          @lock.synchronize { hear(kind, process, details, clock) }
        end

        def hear(kind, process, details, now)
          case kind
          when "alive" then @members.alive(process, now) || tell("ask")
          when "join" then enter(process, details, now)
          when "leave" then @members.leave(*details)
          when "ended" then @members.ended(*details, now)
          when "moved" then @members.moved(process, *details, now)
          when "known" then learn(process, *details, now) unless process == @process
          end
        end

        def answer
          # With the lock: a leave that is heard meanwhile must come after it.
          @lock.synchronize { @members.sessions_of(@process).each_slice(BATCH) { |batch| tell("known", batch) } }
        end

        def enter(process, details, now)
          sid, stream, id, info, returns = details
          quietly(returns && now < @begun + NO_RETURNS) { @members.join([process, sid, stream], id, info, now) }
        end

        # Clients have heard of these before this process has, unless it has taken their process for dead.
        def learn(process, sessions, now)
          quietly(now < @begun + NO_NEWS) { sessions.each { |stream, id, info, sid| @members.join([process, sid, stream], id, info, now) } }
        end

        def quietly(is_quiet)
          @is_quiet = is_quiet
          yield
        ensure
          @is_quiet = false
        end

        def announce(stream, type, id, info)
          change = JSON.generate({ type: type, id: id, info: info }.compact)
          Extended::Transients.deliver(stream, change, type: "presence") unless @is_quiet
        end

        def clock = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
      end
    end
  end
end
