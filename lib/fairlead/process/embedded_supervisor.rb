# frozen_string_literal: true

module Fairlead
  # The supervisor inside the process of a program that has handed over an application, such as rackup or `rails server`. It is the
  # same code as in the program of its own (Native::Supervisor); here, signals come by way of Ruby's traps.
  class EmbeddedSupervisor
    # +link+: see FirstStart#hand_over.
    def initialize(link)
      @native = Native::Supervisor.new(link.fileno)
      @signals = Signals.new
    rescue RuntimeError => e
      raise Error, e.message
    end

    # Serves until it is asked to end; returns the exit status. Raises Error if the application cannot be loaded.
    def run
      @signals.trap_known(*Signals::REQUESTS.keys)
      listener = Thread.new { pass_on }
      listener.name = "fairlead signals"
      status, defeat, by_term = @native.run
      raise Error, defeat if defeat
      raise SignalException, "SIGTERM" if by_term

      status
    ensure
      listener&.kill
      @signals.restore
    end

    # Asks for something, from any thread and from a trap; see Spawner#ask.
    def ask(request) = @signals.push(request)

    def stop_later = ask(:stop)

    private

    # In the trap itself, nothing may be waited for.
    def pass_on
      loop { @signals.wait.each { |event| @native.ask(event.to_s) } }
    end
  end
end
