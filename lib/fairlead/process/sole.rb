# frozen_string_literal: true

require_relative "serving"

module Fairlead
  # The process of a server without workers: it loads the application like a Spawner, and serves like a Worker. It drains when
  # the supervisor asks for it, and when the supervisor has ended.
  #
  #   loading ──▶ waiting ──serve──▶ serving ──drain, end──▶ ended
  class Sole
    include Serving
    include Role

    # As for Spawner.
    def initialize(service, link, shared, number, joining: nil)
      @service = service
      @log = service.log
      @link = link
      @shared = shared
      @number = number
      @joining = joining
      @signals = Signals.new
      @steward = Steward.new(service, link, joining: joining)
      @plugins = Plugins.new(self, service)
    end

    # Serves until it is asked to end; returns the exit status.
    def run
      prepare_process
      @plugins.start
      @service.prepare
      wait_for_place
      serve_there if @place
      run_hooks(:after_stopped)
      @plugins.stopped
      @log.stopped if @server_ends && !@log.plain?
      0
    rescue Shortage => e
      fail_with(e)
    rescue SignalException
      @steward.give_up
      raise
    ensure
      @signals.restore
    end

    # Asks the supervisor for something; see Spawner#ask.
    def ask(request) = @link.send(:ask, request)

    def stop_later = ask(:stop)

    private

    # A Ctrl-C reaches every process of the terminal; the supervisor decides about it. While the application is being loaded,
    # TERM raises (EarlySignals), so that the application can clean up.
    def prepare_process
      @supervisor = Process.ppid
      Launcher.current&.continue_as(self)
      Process.setproctitle("fairlead: server, generation #{@number} [#{@service.configuration.tag}]")
      @signals.ignore("INT", "HUP", "USR1", "USR2", "TTIN", "TTOU", "URG")
      @signals.exit_on("QUIT") { @joining&.close }
      Native.end_with_link!(@link.fileno, @service.configuration.shutdown_timeout + Worker::EXIT_GRACE, Worker::MOMENT)
    end

    # The supervisor has to prepare for a new configuration, and previous processes may still serve.
    def wait_for_place
      @steward.report(@supervisor)
      take_signals
      until @place || @ended
        @steward.look
        @signals.wait(@steward.pause, @link).each { |event| act_on(event) }
      end
    end

    def take_signals = @signals.trap("TERM", "INT", "QUIT", "HUP", Signals::BACKTRACES)

    def serve_there
      engine.start
      @service.listeners.close # the engine has its own descriptors, and closes them when it drains
      @shared.beat(@slot)
      @link.send(:booted)
      serve(@link, heartbeat: @steward.pause) { |event| act_on(event) }
      @steward.close
    end

    def engine = @engine ||= Engine.new(@service, shared: @shared, slot: @slot)

    def act_on(event)
      case event
      when :HEARTBEAT then look
      when :TERM, :INT then ask(:stop) || leave
      when :QUIT then ask(:halt) || halt
      when :HUP then @service.reopen_logs
      when :PWR, :INFO then Backtraces.print(@log)
      when @link then @link.messages.each { |message| @steward.act_on(message) || obey(message) }
      end
    end

    def look
      beat
      @steward.look
    end

    def beat = @shared.beat(@slot)

    def obey(message)
      case message.kind
      when :serve then take_place(message)
      when :booted then booted
      when :restarting then restarting
      when :drain then leave(long: Float(message.fields.first || 0))
      when :end then end_server { leave(delay: Float(message.fields.first || 0), ending: message.numbers(1..)) }
      when :stop then end_server { halt }
      when :close_listeners then @service.listeners.close
      when :gone then supervisor_gone
      end
    end

    def take_place(message)
      @index = message.number(0)
      @slot = message.number(1)
      @place = true
      @shared.adopt_mailbox(@slot, message.ios.map(&:fileno)) # for messages of processes beside the server
      message.ios.each(&:close)
    end

    def end_server
      @server_ends = true
      yield
    end

    # See Engine#drain.
    def leave(**how)
      @engine ? drain(**how) : @ended = true
    end

    def halt
      @engine ? stop : @ended = true
    end

    def booted
      run_hooks(:after_booted)
      @plugins.booted
    end

    def restarting
      run_hooks(:before_restart, @plugins.launcher)
      @plugins.will_restart
    end

    def supervisor_gone
      @link.close
      @log.supervisor_gone if @engine
      run_hooks(:supervisor_lost, @index) if @engine
      leave
    end

    def fail_with(error)
      @link.send(:failed, Shortage.to_error(error).message)
      @steward.give_up
      1
    end

    def run_hooks(name, *arguments) = @service.configuration.hooks.run(name, *arguments, log: @log)
  end
end
