# frozen_string_literal: true

require "json"

module Fairlead
  module Cable
    module Presence
      # Who is present in which stream, as far as one process knows. All processes get the same changes. A member is present while
      # one of its sessions is. A session that ends without leaving counts for +TTL+ seconds more, and so do the sessions of a process
      # that has died. Reads no clock.
      class Members
        # Seconds.
        TTL = 15

        # Seconds for which a session counts while its client is on the way to another process.
        MOVE = 60

        # The most sessions in streams that a process knows. Beyond it, nobody can join.
        MOST = 100_000

        # The most bytes of their infos, as JSON. As objects they take many times that.
        MOST_BYTES = 4 * 1024 * 1024

        Member = Struct.new(:info, :sessions, :bytes)
        Session = Struct.new(:process, :streams, :until)

        # The block gets each change: a stream, :join or :leave, the id of the member, and its info.
        def initialize(&change)
          @streams = Hash.new { |streams, name| streams[name] = {} } # name => { id => Member }
          @sessions = {} # sid => Session
          @ended = {}    # sid => Session, the oldest first
          @moving = {}   # the same
          @processes = {} # process => the time of its last sign of life
          @count = 0
          @bytes = 0
          @change = change
        end

        # A session joins a stream as the member +id+. It cannot have another id in the same stream. Returns false if it is refused.
        # +session+: its process, id and stream.
        def join(session, id, info, now)
          process, sid, stream = session
          session = session(process, sid, now)
          known = session.streams[stream]
          return known == id && update(stream, id, sid, info) if known
          return false if full?

          @count += 1
          session.streams[stream] = id
          member = @streams[stream][id]
          return member.sessions.store(sid, true) if member # with the info of its first session

          member = @streams[stream][id] = Member.new(info, { sid => true }, JSON.generate(info).bytesize)
          @bytes += member.bytes
          @change.call(stream, :join, id, info)
          true
        end

        def leave(sid, stream)
          session = @sessions[sid]
          id = session&.streams&.delete(stream) or return
          forget(sid) if session.streams.empty?
          @count -= 1
          member = @streams[stream][id]
          member.sessions.delete(sid)
          return if member.sessions.any?

          @bytes -= member.bytes
          @streams[stream].delete(id)
          @streams.delete(stream) if @streams[stream].empty?
          @change.call(stream, :leave, id, nil)
        end

        # The client of a session is gone. It may come back, with another session.
        def ended(sid, now)
          session = @sessions[sid] or return
          return if @ended.key?(sid)

          @moving.delete(sid)
          session.until = now + TTL
          @ended[sid] = session
        end

        # The client of a session leaves a process for another one, which may have told of the session already.
        def moved(process, sid, now)
          session = @sessions[sid] or return
          return unless session.process == process && !@ended.key?(sid)

          session.until = now + MOVE
          @moving.delete(sid)
          @moving[sid] = session
        end

        # A sign of life of a process. Returns false if it was not known.
        def alive(process, now)
          known = @processes.key?(process)
          @processes[process] = now
          known
        end

        # Nobody was heard for a while, because this process was stopped.
        def stopped(now) = @processes.transform_values! { now }

        # Ends what is overdue.
        def expire(now)
          dead = @processes.select { |_, seen| seen + TTL < now }.keys
          dead.each { |process| @processes.delete(process) }
          lost = dead.empty? ? [] : @sessions.select { |sid, session| dead.include?(session.process) && !@moving.key?(sid) }.keys
          overdue = [@ended, @moving].flat_map { |sessions| sessions.take_while { |_, session| session.until <= now }.map(&:first) }
          (lost + overdue).each { |sid| remove(sid) }
        end

        def full? = @count >= MOST || @bytes >= MOST_BYTES

        # True if a session of that process is among them.
        def from?(process) = @sessions.any? { |_, session| session.process == process && session.until.nil? }

        # The id and the info of a session's member, or nil.
        def member(sid, stream)
          id = @sessions[sid]&.streams&.[](stream)
          [id, @streams[stream][id].info] if id
        end

        # The members of a stream: id => info.
        def of(stream) = @streams.key?(stream) ? @streams[stream].transform_values(&:info) : {}

        # Stream, id, info and sid of each session of a process.
        def sessions_of(process)
          own = @sessions.select { |_, session| session.process == process && session.until.nil? }
          own.flat_map { |sid, session| session.streams.map { |stream, id| [stream, id, @streams[stream][id].info, sid] } }
        end

        private

        def session(process, sid, now)
          @processes[process] = now
          session = @sessions[sid] ||= Session.new(process, {}, nil)
          session.process = process
          [@ended, @moving].each { |sessions| sessions.delete(sid) }
          session.until = nil
          session
        end

        # The first session decides.
        def update(stream, id, sid, info)
          member = @streams[stream][id]
          return true unless member.sessions.first.first == sid

          @bytes -= member.bytes
          member.info = info
          @bytes += member.bytes = JSON.generate(info).bytesize
          true
        end

        def remove(sid)
          session = @sessions[sid] or return
          session.streams.keys.each { |stream| leave(sid, stream) } # rubocop:disable Style/HashEachMethods -- it deletes
          forget(sid)
        end

        def forget(sid)
          [@sessions, @ended, @moving].each { |sessions| sessions.delete(sid) }
        end
      end
    end
  end
end
