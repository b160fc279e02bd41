# frozen_string_literal: true

require_relative "serving"

module Fairlead
  # A process that a spawner has forked to serve. It drains when the supervisor asks for it, and when the supervisor has ended.
  # The supervisor may also ask it to become a spawner: then it drains first.
  class Worker
    include Serving
    include Role

    # The highest number of workers of a server, and so the number of slots of the scoreboard.
    MOST = Options.fetch(:workers).type.most

    # Seconds in which a process has to end once its requests have been aborted.
    EXIT_GRACE = 5

    # Seconds for a process without an engine to notice the end of the supervisor by itself.
    MOMENT = 1

    # Seconds between two heartbeats to the supervisor.
    HEARTBEAT = 1.0

    # +link+: to the supervisor. +shared+, +slot+ and +generation+: as for Engine. +index+: its number, for hooks.
    def initialize(service, link, shared, index:, slot:, generation:)
      @service = service
      @link = link
      @shared = shared
      @index = index
      @slot = slot
      @signals = Signals.new
      @engine = Engine.new(service, shared: shared, slot: slot, generation: generation)
      @follower = Tls::Follower.new(service.tls) { |key, reason| link.send(:certified, key, *reason) }
    end

    # Serves until it is asked to end; returns the exit status.
    def run
      prepare_process
      boot
      @shared.beat(@slot) # the supervisor counts from the first beat
      @link.send(:booted)
      serve(@link, heartbeat: heartbeat) { |event| act_on(event) }
      @link.send(:finished)
      return become_spawner if @promotion

      run_hooks(:before_worker_shutdown)
      0
    rescue Shortage => e
      @link.send(:failed, Shortage.to_error(e).message)
      1
    ensure
      @signals.restore
    end

    # Asks the supervisor to end the server.
    def stop_later = @link.send(:ask, :stop)

    private

    # A Ctrl-C reaches every process of the terminal; the supervisor decides about it.
    def prepare_process
      Launcher.current&.continue_as(self)
      Process.setproctitle("fairlead: worker #{@index} [#{@service.configuration.tag}]")
      @signals.ignore("INT", "HUP", "USR1", "USR2", "TTIN", "TTOU", "URG")
      @signals.exit_on("TERM")
      Native.end_with_link!(@link.fileno, @service.configuration.shutdown_timeout + EXIT_GRACE, MOMENT)
    end

    # While the application is being loaded, TERM ends the process at once: there is nothing to finish.
    def boot
      run_hooks(:before_worker_boot)
      @service.prepare
      @signals.trap("TERM", "QUIT", "HUP", Signals::BACKTRACES)
      @engine.start
      @service.listeners.close # the engine has its own descriptors, and closes them when it drains
    end

    def beat = @shared.beat(@slot)

    # More often if worker_timeout is short.
    def heartbeat = [HEARTBEAT, @service.configuration.worker_timeout / 4.0].min

    def run_hooks(name)
      @service.configuration.hooks.run(name, @index, log: @service.log)
    end

    def act_on(event)
      case event
      when :HEARTBEAT then beat
      when :TERM then migrate
      when :QUIT then stop
      when :HUP then @service.reopen_logs
      when :PWR, :INFO then Backtraces.print(@service.log)
      when @link then @link.messages.each { |message| obey(message) }
      end
    end

    def obey(message)
      case message.kind
      when :drain then retire(message)
      when :end then leave(delay: Float(message.fields.first), ending: message.numbers(1..))
      when :stop then stop
      when :reopen_logs then @service.reopen_logs
      when :certificates then @follower.take(*message.fields.values_at(0, 2), message.ios.first)
      when :backtraces then message.ios.empty? ? Backtraces.print(@service.log) : Backtraces.write(Backtraces.all, message.ios.first)
      when :listeners then (@listeners ||= []).concat(message.ios)
      when :examine then examine
      when :promote then promote(message)
      when :gone then supervisor_gone
      end
    end

    # Ends with the whole server. See Engine#drain.
    def leave(**how)
      @promotion = nil
      drain(**how)
    end

    # Ends while other workers go on. If they are of another version, the message has the queues to which they listen.
    def retire(message)
      long, *names = message.fields
      patient = names.first == "patiently"
      heirs = names.zip(message.ios).to_h.values_at("connections", "clients")
      @engine.heirs = heirs if heirs.all? && !draining?
      message.ios.each(&:close)
      migrate(long: Float(long || 0), patient: patient)
    end

    # Aborts all requests: neither a copy of this process nor its hook is wanted any more.
    def stop
      @promotion = nil
      super
    end

    # Ends while the others go on. +how+: as for #drain.
    def migrate(**how)
      @promotion = nil
      drain(migrate: true, **how)
    end

    # Reports problems of copies of this process, while it serves on. The hook may end the causes of problems, but only in a process that has
    # stopped serving, which then looks for itself.
    def examine
      return @link.send(:examined, "") if @service.configuration.hooks.any?(:before_refork)

      addresses = @service.listeners.map(&:address)
      Thread.new { @link.send(:examined, problems_of_serving(addresses)) }
    rescue ThreadError
      nil # there is no room for a thread, so none for a refork
    end

    # An exception must not leave the thread: with `Thread.abort_on_exception` of the application it would end the worker.
    def problems_of_serving(addresses)
      ForkSafety.lasting_problems { ForkSafety::Connections.beside(addresses) }.join("; ")
    rescue Exception => e # rubocop:disable Lint/RescueException -- see above
      "it is unknown if a worker can be copied: #{Error.plain(e)}"
    end

    def promote(message)
      return if @stopped

      @promotion = message unless draining?
      patience = automatic?(message) ? { long: Float(message.fields[2]), patient: true } : {}
      drain(migrate: true, **patience)
    end

    # True if the user has not asked for the refork: no request and no client ends for it.
    def automatic?(promotion) = promotion.fields[1] == "automatic"

    def supervisor_gone
      @link.close
      @service.log.supervisor_gone
      run_hooks(:supervisor_lost)
      leave
    end

    # All serving threads have ended; other threads of the application go on. A refork that the user has not asked for must not make
    # copies of a process that is not made for it.
    def become_spawner
      run_hooks(:before_refork)
      problems = automatic?(@promotion) ? problems_of_copies : []
      return refuse_promotion("#{problems.join("; ")} (see docs/guides/fork_safety.md)") if problems.any?

      @service.adopt_listeners(@listeners.to_a)
      Background.current.renew
      become Spawner.new(@service, @link, @shared, @promotion.number, warm: true)
    rescue DescriptorError => e
      refuse_promotion(e.message)
    end

    def problems_of_copies
      ForkSafety.disconnect
      ForkSafety.problems
    rescue StandardError, ScriptError => e
      [Error.plain(e)]
    end

    # Another worker serves in place of this one.
    def refuse_promotion(reason)
      @link.send(:failed, reason)
      run_hooks(:before_worker_shutdown)
      0
    end
  end
end
