# frozen_string_literal: true

module Fairlead
  # The supervisor inside the process of a program that has handed over an application, such as rackup or `rails server`. It
  # runs the code of the supervisor's program on a native thread (Native::Supervisor), and gets the signals of this process.
  # After a restart, when only this process is left of the old code, it becomes that program: then #run does not return.
  class EmbeddedSupervisor
    # +link+: to a FirstStart that has sent everything. +program+: the path of the program. Raises Error.
    def initialize(link, program)
      @supervisor = Native::Supervisor.new(link.fileno, program, RestartCommand.current.pid_file)
      @bell = IO.for_fd(@supervisor.fileno, autoclose: false)
      @pid = Process.pid
    rescue RuntimeError => e # the message is a sentence
      raise Error, e.message
    end

    # Serves until the server is asked to end; returns the exit status. Raises Error if the application cannot be loaded. +role+: the
    # Resident of this process, if it has one.
    def run(role = nil)
      run_beside(role)
      status, defeat, @ended_by_term = @supervisor.finish
      raise Error, defeat if defeat

      status
    ensure
      @supervisor.release if own_process?
    end

    # True if the process has to end as TERM ends it.
    def ended_by_term? = @ended_by_term == true

    # Asks the supervisor for something, from any thread and from a trap; see Spawner#ask. Does nothing in a process that the
    # application has forked: it has no supervisor, and its copy of the lock may be held.
    def ask(request)
      @supervisor.ask(request.to_s) if own_process?
    end

    def stop_later = ask(:stop)

    private

    def run_beside(role)
      @supervisor.start(Signals.known(*Signals::REQUESTS.keys))
      role&.run
      @bell.wait_readable
    ensure
      end_now if own_process?
    end

    # If an exception interrupts this thread, the server ends before the exception goes on. Traps still run.
    def end_now
      Thread.handle_interrupt(Object => :never) do
        ask(:halt) unless @bell.wait_readable(0)
        @bell.wait_readable
      end
    end

    # False in a process that the application has forked from this thread.
    def own_process? = Process.pid == @pid
  end
end
