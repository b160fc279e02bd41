# frozen_string_literal: true

# Keeps for the processes of one run of the tests what Ruby compiles of its library, of gems and of lib: to compile these files takes a
# third of the CPU time of a server's start. Bootsnap does the same for Rails. Ruby asks `load_iseq` before it compiles a file.
#
# bin/support/ruby-tests loads this file in each test process, and RUBYOPT in their servers. Without FAIRLEAD_TESTS_SHARE it changes
# nothing. Applications and tests are compiled as ever. Warnings of the compiler are kept apart: a file that has been compiled without
# them is compiled again by a process that wants them.
class RubyVM
  class InstructionSequence # :nodoc:
    share = ENV.fetch("FAIRLEAD_TESTS_SHARE", "")
    @kept = File.join(share, "compiled", RUBY_DESCRIPTION.tr("/", "_")) unless share.empty?
    @folders = ["#{RbConfig::CONFIG["prefix"]}/", "#{File.expand_path("../../lib", __dir__)}/"] if @kept

    class << self
      # Nil lets Ruby compile the file.
      def load_iseq(path)
        return unless @folders && path.start_with?(*@folders)

        source = File.stat(path)
        kept = File.join(@kept, "#{path.tr("/", "%")}-#{source.mtime.strftime("%s.%N")}-#{source.size}-#{$VERBOSE.inspect}")
        File.exist?(kept) ? load_from_binary(File.binread(kept)) : compile_file(path).tap { |compiled| keep(compiled, kept) }
      rescue SystemCallError, IOError # no descriptors left, another user
        nil
      end

      private

      def keep(compiled, path)
        Dir.mkdir(@kept) unless File.exist?(@kept)
        File.binwrite("#{path}.#{Process.pid}", compiled.to_binary)
        File.rename("#{path}.#{Process.pid}", path)
      rescue SystemCallError, IOError
        nil
      end
    end
  end
end
