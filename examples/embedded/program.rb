# frozen_string_literal: true

require "logger"
require "yaml"
require_relative "launcher"

# A program with settings, a log and signal handlers of its own, and Fairlead inside:
#
#   TERM, INT  end, after the requests that have arrived
#   HUP        read the settings again: the servers stop and start in the same process
#   USR1       reopen the log
#   TTIN       print the backtrace of every thread
class Program
  # +path+: the file with the settings.
  def initialize(path)
    @path = path
    @signals = Thread::Queue.new
    @counter = Counter.new
  end

  # Runs until a signal ends it; returns the exit status. The servers have their own threads, so this one waits for signals.
  def run
    $stdout.sync = true
    %w[TERM INT HUP USR1 TTIN].each { |name| trap(name) { @signals << name } } # a Logger does not work in a trap
    launch
    signal = act_on(@signals.pop) until signal == :ended
    0
  rescue Fairlead::Error, ArgumentError => e
    logger.error(e.message)
    1
  end

  private

  def launch
    @launcher = Launcher.new(settings, logger, counter: @counter).start
  end

  def restart
    @launcher.stop
    launch
  end

  def act_on(signal)
    case signal
    when "HUP" then restart
    when "USR1" then logger.reopen
    when "TTIN" then Thread.list.each { |thread| logger.info("#{thread.name || thread}\n  #{thread.backtrace&.join("\n  ")}") }
    else
      @launcher.stop
      logger.info("ended by #{signal}")
      :ended
    end
  end

  def settings = YAML.safe_load_file(@path)

  def logger
    @logger ||= Logger.new(settings["log_file"] || $stdout, formatter: ->(level, _, _, text) { "#{level}: #{text}\n" })
  end
end

exit(Program.new(ARGV.fetch(0, File.join(__dir__, "settings.yml"))).run) if $PROGRAM_NAME == __FILE__
