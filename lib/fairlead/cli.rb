# frozen_string_literal: true

module Fairlead
  # The command `fairlead`. Whatever keeps it from starting is told in one message, and its exit status is 1.
  class CLI
    # Runs the command and returns its exit status.
    def self.start(arguments, output: $stdout, errors: $stderr)
      new(arguments, output, errors).run
    end

    def initialize(arguments, output, errors)
      @arguments = arguments
      @output = output
      @errors = errors
    end

    def run
      return LoadTool.run(@arguments.drop(1)) if @arguments.first == "bench"

      act
    rescue SignalException => e # asked to end before it served
      128 + e.signo
    rescue Error => e
      raise if @flags&.debug?

      EventLog.new(errors: @errors).start_failed(e)
      1
    end

    private

    def act
      @flags = Configuration::Flags.parse(@arguments)
      case @flags.action
      when :help then tell(@flags.help)
      when :version then tell("fairlead #{VERSION}\n")
      when :check then check
      else Launcher.new(Configuration.load(@flags)).run
      end
    end

    # Everything that can be known without listening and without running the application.
    def check
      configuration = Configuration.load(@flags)
      Dir.chdir(configuration.directory) { AppLoader.check(configuration) }
      configuration.warnings.each { |text| EventLog.new(errors: @errors).warning(text) }
      tell(Configuration::Report.new(configuration).to_s)
    end

    def tell(text)
      @output.write(text)
      0
    end
  end
end
