# frozen_string_literal: true

module Fairlead
  # Signals, and other events that the main loop waits for. A trap only queues the event and wakes the loop through a pipe
  # (https://cr.yp.to/docs/selfpipe.html); the loop acts on it, outside the trap.
  class Signals
    # True in a trap. A trap must not wait for anything: Ruby refuses to lock a Mutex there.
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

    # Requests to a server, with and without workers, by signal. INFO is the name of PWR on BSD.
    REQUESTS = {
      TERM: :stop, INT: :stop, QUIT: :halt, HUP: :hang_up, TTIN: :add_worker, TTOU: :remove_worker, USR1: :phased_restart, USR2: :restart,
      URG: :refork, PWR: :backtraces, INFO: :backtraces
    }.freeze

    # The signal of them that asks for backtraces on this system.
    BACKTRACES = Signal.list.key?("INFO") ? "INFO" : "PWR"

    # Variables that leave a signal to the application => the signal.
    SKIPPED = { "PUMA_SKIP_SIGUSR2" => "USR2" }.freeze

    # Traps these signals ("TERM", "INT"); they arrive as events of their names (:TERM, :INT). In a process that the application
    # has forked, a signal has its default effect.
    def trap(*names)
      pid = Process.pid
      names.each { |name| replace(name) { Process.pid == pid ? push(name.to_sym) : default(name) } }
    end

    # The signals of +names+ that the system has and that no variable excludes.
    def self.known(*names, environment: ENV)
      skipped = SKIPPED.select { |variable, _| environment.key?(variable) }.values
      names.map(&:to_s).intersection(Signal.list.keys) - skipped
    end

    # Makes these signals do nothing. "IGNORE" would do the same here, but programs started by this process would ignore them,
    # too (execve(2)).
    def ignore(*names)
      names.each { |name| replace(name) { nil } }
    end

    # Makes these signals end the process at once, with the status that a shell would report. An exception could interrupt a
    # +require+, and RubyGems would turn it into its own error. The block is called before, in the trap.
    def exit_on(*names, &before)
      names.each do |name|
        replace(name) do
          before&.call
          exit!(128 + Signal.list.fetch(name))
        end
      end
    end

    # Restores the previous handler of every signal, and closes the pipe.
    def restore
      @previous.each { |name, handler| Signal.trap(name, handler || "DEFAULT") }
      @previous.clear
      [@reader, @writer].each(&:close)
    end

    # Queues an event. May be called in a trap or by any thread.
    def push(event)
      @events << event
      @writer.write_nonblock(".", exception: false)
    rescue IOError, Errno::EPIPE
      nil
    end

    # Waits for events, or until one of +ios+ is readable, for +seconds+ at most. Returns the events and the readable +ios+, if
    # any.
    def wait(seconds = nil, *ios)
      readable, = IO.select([@reader, *ios], nil, nil, seconds)
      nil while @reader.read_nonblock(1024, exception: false).is_a?(String)
      events = Array.new(@events.size) { @events.pop }
      events + ios.intersection(readable || [])
    end

    private

    def default(name)
      Signal.trap(name, "DEFAULT")
      Process.kill(name, Process.pid)
    end

    def replace(name, &handler)
      previous = Signal.trap(name, handler)
      @previous[name] = previous unless @previous.key?(name)
    end
  end
end
