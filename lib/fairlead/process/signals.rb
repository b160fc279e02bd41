# frozen_string_literal: true

module Fairlead
  # Signals, and other events that end a wait. A trap does no more than to note the event and wake the main loop through
  # a pipe (https://cr.yp.to/docs/selfpipe.html); the loop acts on it, outside the trap.
  class Signals
    # Whether a trap runs, in which nothing may be waited for. Ruby tells by refusing a lock.
    def self.in_trap?
      Mutex.new.synchronize { false }
    rescue ThreadError
      true
    end

    def initialize
      @events = Thread::Queue.new
      @reader, @writer = IO.pipe
      @previous = {}
    end

    # Traps these signals ("TERM", "INT"); they arrive as events of their names (:TERM, :INT).
    def trap(*names)
      names.each { |name| replace(name) { push(name.to_sym) } }
    end

    # Lets these signals do nothing.
    def ignore(*names)
      names.each { |name| replace(name, "IGNORE") }
    end

    # Lets these signals end the process at once, with the status a shell would give it. An exception in the middle of a
    # +require+ would make RubyGems complain.
    def exit_on(*names)
      names.each { |name| replace(name) { exit!(128 + Signal.list.fetch(name)) } }
    end

    # Restores the previous handler of every signal, and closes the pipe.
    def restore
      @previous.each { |name, handler| Signal.trap(name, handler || "DEFAULT") }
      @previous.clear
      [@reader, @writer].each(&:close)
    end

    # Notes an event; from a trap or from another thread.
    def push(event)
      @events << event
      @writer.write_nonblock(".", exception: false)
    rescue IOError, Errno::EPIPE
      nil
    end

    # Waits for events, or until one of +ios+ is readable, or for +seconds+; returns the events and the readable ones
    # of +ios+, which may be none.
    def wait(seconds = nil, *ios)
      readable, = IO.select([@reader, *ios], nil, nil, seconds)
      nil while @reader.read_nonblock(1024, exception: false).is_a?(String)
      Array.new(@events.size) { @events.pop } + ios.intersection(readable || [])
    end

    # Whether the signal did nothing before it was trapped, as HUP under nohup.
    def ignored_before?(name) = @previous[name] == "IGNORE"

    private

    def replace(name, handler = nil, &block)
      previous = Signal.trap(name, handler || block)
      @previous[name] = previous unless @previous.key?(name)
    end
  end
end
