# frozen_string_literal: true

module Fairlead
  # Replaces the program of this process by the same command, run anew, with the open listeners: clients that connect meanwhile
  # wait in the kernel.
  #
  # The new program checks the configuration first, in a process of its own, because nothing is left to return to afterwards.
  class HotRestart
    # Signals whose default is to end the process. They are ignored until the new program handles them.
    IGNORED = %w[HUP USR1 USR2 TTIN TTOU PWR].freeze

    # +server+: the event [:exec, problem or nil] goes to its Signals when the check is over.
    def initialize(signals, log)
      @signals = signals
      @log = log
      @check = nil
    end

    # Starts the check, unless there is one already.
    def check
      return if @check&.alive?

      @log.restart_checked
      @check = Thread.new { @signals.push([:exec, RestartCommand.current.check(Launcher.current&.listeners.to_a)]) }
    rescue ThreadError => e
      @signals.push([:exec, e.message])
    end

    # Does it. Returns only if that fails: the reason. +variables+ and +ios+: what else the new program inherits.
    def exec(listeners, variables = {}, *ios)
      folder = current_folder
      ignored = IGNORED.to_h { |name| [name, trap(name, "IGNORE")] }
      @log.restarting_hot
      variables = { Inherited::VARIABLE => Inherited.describe(listeners), **held_back, **variables, **Launcher.current.desk.hand_over }
      RestartCommand.current.exec(variables, *ios, *listeners.map(&:to_io))
    rescue SystemCallError => e
      ignored&.each { |name, handler| trap(name, handler) }
      Dir.chdir(folder) if folder
      Error.plain(e)
    end

    private

    def held_back = @signals.ignored_before?("HUP") ? {} : { EarlySignals::HELD_BACK => "1" }

    # nil if it is no more: a deployment may delete the old release before the restart.
    def current_folder
      Dir.pwd
    rescue Errno::ENOENT
      nil
    end
  end
end
