# frozen_string_literal: true

module Fairlead
  # The command `fairlead`. If the server cannot start, it prints one message, and the exit status is 1.
  class CLI
    # Runs the command and returns its exit status.
    def self.start(arguments, output: $stdout, errors: $stderr)
      new(arguments, output, errors).run
    end

    # Prints the whole output of a command; returns the exit status. Raises Error on a full disk, because a script must not use
    # truncated output.
    def self.print(text, output)
      output.write(text)
      output.flush
      0
    rescue Errno::EPIPE # as in `fairlead --help | head`
      1
    rescue SystemCallError => e
      raise Error, "cannot print: #{Error.reason(e)}"
    end

    def initialize(arguments, output, errors)
      @arguments = arguments
      @output = output
      @errors = errors
    end

    def run
      return LoadTool.run(@arguments.drop(1)) if @arguments.first == "bench"
      return Migrate.run(@arguments.drop(1), output: @output, errors: @errors) if @arguments.first == "migrate"
      return Control::Tool.run(@arguments.drop(1), output: @output, errors: @errors) if @arguments.first == "ctl"

      return Control::Tool.run(@arguments, output: @output, errors: @errors) if @arguments.first == "top"

      RestartCommand.note

      dispatch
    rescue SignalException => e # a signal before the server has started
      128 + e.signo
    rescue Error => e
      Spawner.inherited_link
      told = Spawner.report_failure(e)
      raise if (@configuration || @flags)&.debug?

      told || (@log || EventLog.new(errors: @errors)).start_failed(e)
      1
    end

    private

    def dispatch
      @flags = Collections.without { Configuration::Flags.parse(@arguments) }
      case @flags.action
      when :help then print(@flags.help)
      when :version then print("fairlead #{VERSION}\n")
      when :check then check
      else serve
      end
    end

    def serve
      @configuration = Configuration.load(@flags)
      @log = EventLog.of(@configuration, output: @output, errors: @errors)
      Launcher.new(@configuration, log: @log).run
    end

    # Checks the configuration without listening, without loading the application, and without changing anything.
    def check
      configuration = Configuration.load(@flags)
      Dir.chdir(configuration.directory) do
        Preflight.of_check(configuration).run
        Tls::Offers.new(configuration, EventLog.new(errors: @errors), checking: true).warn
      end
      configuration.warnings.each { |text| EventLog.new(errors: @errors).warning(text) }
      print(Configuration::Report.new(configuration).to_s)
    end

    def print(text) = CLI.print(text, @output)
  end
end
