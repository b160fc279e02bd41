# frozen_string_literal: true

module Fairlead
  # A program for which this process waits, and the processes that it starts. They are a separate process group, so that all of
  # them can be ended if the program takes too long.
  class ProgramGroup
    # Seconds that it waits until the system reports the end.
    PATIENCE = 1

    # Starts the program; as Process.spawn.
    def initialize(*command, **options)
      @pid = Process.spawn(*command, **options, pgroup: true)
    end

    # Waits for the program, not for processes that it has started. Returns its Process::Status; nil if other code in this
    # process has taken the status; or :late. +limit+: a RunningTime::Limit.
    def wait(limit)
      @ended = limit.wait { |seconds| waiter.join(seconds) }
      @ended ? waiter.value : :late
    end

    # Kills the whole group, unless the program has ended by itself.
    def stop
      return if @ended

      kill
      waiter.join(PATIENCE)
    rescue ThreadError
      nil # there is no room for another thread
    end

    private

    # Begins late: until a process waits for the program, the system gives its id to no other process.
    def waiter = @waiter ||= Process.detach(@pid)

    def kill
      Process.kill(:KILL, -@pid)
    rescue Errno::ESRCH, Errno::EPERM
      nil
    end
  end
end
