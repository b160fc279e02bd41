# frozen_string_literal: true

module Fairlead
  # The supervisor program of this version, for a server that a supervisor of another version runs. It will replace that
  # supervisor, so we must know before that it runs here.
  module OtherSupervisor
    # Seconds that the program may take to print its versions.
    PATIENCE = 10

    class << self
      # The absolute path of the program. Raises Error.
      def find
        path = File.expand_path(NativeProgram.find(FirstStart::PROGRAM, "the supervisor"))
        said = ask(path)
        return path if said == "#{SupervisorSettings::PROTOCOL} #{Native::Shared::LAYOUT}"

        raise Error, "#{path} does not belong to Fairlead #{VERSION}: it says #{said.inspect}; install the gem again"
      end

      private

      def ask(path)
        reader, writer = IO.pipe
        group = ProgramGroup.new({}, path, "--versions", out: writer, err: File::NULL)
        writer.close
        status = group.wait(RunningTime::Limit.new(PATIENCE))
        raise Error, "#{path} does not run: #{status == :late ? "no answer in #{PATIENCE} s" : status}" if status == :late || !status&.success?

        reader.read.strip
      rescue SystemCallError => e
        raise Error, "#{path} cannot be run: #{Error.plain(e)}"
      ensure
        group&.stop
        [reader, writer].each { |io| io&.close }
      end
    end
  end
end
