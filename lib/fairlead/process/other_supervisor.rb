# frozen_string_literal: true

module Fairlead
  # The program of the supervisor that belongs to this version, for a server that one of another version supervises. That is going to be
  # replaced by it, so it must be certain before that it runs here.
  module OtherSupervisor
    # How long it may take to say its versions, in seconds.
    PATIENCE = 10

    class << self
      # Its absolute path. Raises Error.
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
