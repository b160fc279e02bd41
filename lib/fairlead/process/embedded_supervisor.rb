# frozen_string_literal: true

module Fairlead
  # The supervisor inside the process of a program that has handed over an application, such as rackup or `rails server`. It is the
  # same code as in the program of its own (Native::Supervisor); here, signals come by way of Ruby's traps.
  class EmbeddedSupervisor
    # +link+: to a FirstStart, which has sent everything. Raises Error.
    def initialize(link)
      @supervisor = Native::Supervisor.new(link.fileno)
    rescue RuntimeError => e # a sentence
      raise Error, e.message
    end

    # Serves until it is asked to end; returns the exit status. Raises Error if the application cannot be loaded.
    def run
      previous = trap_signals
      status, defeat, @ended_by_term = @supervisor.run
      raise Error, defeat if defeat

      status
    ensure
      previous&.each { |name, handler| Signal.trap(name, handler || "DEFAULT") }
    end

    # Whether the process is to end as TERM ends it.
    def ended_by_term? = @ended_by_term == true

    # Asks for something, from any thread and from a trap; see Spawner#ask.
    def ask(request) = @supervisor.ask(request.to_s)

    def stop_later = ask(:stop)

    private

    # Returns the previous handlers.
    def trap_signals
      names = Signals.known(*Signals::REQUESTS.keys).reject { |name| name == "HUP" && ignored?(name) }
      names.to_h { |name| [name, Signal.trap(name) { @supervisor.ask(name) }] }
    end

    # As HUP is under nohup.
    def ignored?(name)
      previous = Signal.trap(name, "IGNORE")
      Signal.trap(name, previous || "DEFAULT")
      previous == "IGNORE"
    end
  end
end
