# frozen_string_literal: true

module Fairlead
  # The supervisor inside the process of a program that has handed over an application, such as rackup or `rails server`. It is the
  # same code as in the program of its own, on a native thread (Native::Supervisor); here, signals come by way of Ruby's traps.
  class EmbeddedSupervisor
    # +link+: to a FirstStart, which has sent everything. Raises Error.
    def initialize(link)
      @supervisor = Native::Supervisor.new(link.fileno)
      @bell = IO.for_fd(@supervisor.fileno, autoclose: false)
      @pid = Process.pid
    rescue RuntimeError => e # a sentence
      raise Error, e.message
    end

    # Serves until the server is asked to end; returns the exit status. Raises Error if the application cannot be loaded. +role+: the
    # Resident of this process, if it has one.
    def run(role = nil)
      previous = trap_signals
      run_beside(role)
      status, defeat, @ended_by_term = @supervisor.finish
      raise Error, defeat if defeat

      status
    ensure
      previous&.each { |name, handler| Signal.trap(name, handler || "DEFAULT") } if own_process?
    end

    # Whether the process is to end as TERM ends it.
    def ended_by_term? = @ended_by_term == true

    # Asks for something, from any thread and from a trap; see Spawner#ask. In a process that the application has forked, nothing happens:
    # the supervisor is not there, and may have held its lock.
    def ask(request)
      @supervisor.ask(request.to_s) if own_process?
    end

    def stop_later = ask(:stop)

    private

    def run_beside(role)
      @supervisor.start
      role&.run
      @bell.wait_readable
    ensure
      end_now if own_process?
    end

    # Whatever interrupts this thread, the server has ended before that goes on. Traps still run.
    def end_now
      Thread.handle_interrupt(Object => :never) do
        ask(:halt) unless @bell.wait_readable(0)
        @bell.wait_readable
      end
    end

    # False in a process that the application has forked from this thread.
    def own_process? = Process.pid == @pid

    # Returns the previous handlers.
    def trap_signals
      names = Signals.known(*Signals::REQUESTS.keys).reject { |name| name == "HUP" && ignored?(name) }
      names.to_h { |name| [name, Signal.trap(name) { ask(name) }] }
    end

    # As HUP is under nohup.
    def ignored?(name)
      previous = Signal.trap(name, "IGNORE")
      Signal.trap(name, previous || "DEFAULT")
      previous == "IGNORE"
    end
  end
end
