# frozen_string_literal: true

# Keeps for the processes of one run of the tests what Ruby compiles of its library, of gems and of lib, and the specifications of the
# default gems, which RubyGems evaluates at its start: both take half of the CPU time of a server's start. Bootsnap does the first for
# Rails. Ruby asks `load_iseq` before it compiles a file.
#
# bin/support/ruby-tests loads this file in each test process, and RUBYOPT in their servers. Without FAIRLEAD_TESTS_SHARE it keeps
# nothing. Applications and tests are compiled as ever. Warnings of the compiler are kept apart: a file that has been compiled without
# them is compiled again by a process that wants them.
#
# With --disable-gems, this file loads RubyGems, and Ruby does not: so what Ruby compiles of RubyGems is kept, too.
class RubyVM
  class InstructionSequence # :nodoc:
    share = ENV.fetch("FAIRLEAD_TESTS_SHARE", "")
    @kept = File.join(share, "compiled", RUBY_DESCRIPTION.tr("/", "_")) unless share.empty?
    # RbConfig has the same prefix, but is one of the files to keep.
    @folders = ["#{File.expand_path("../..", File.readlink("/proc/self/exe"))}/", "#{File.expand_path("../../lib", __dir__)}/"] if @kept

    # Has RubyGems ask, too.
    module KeptDefaults
      def load_defaults = InstructionSequence.load_defaults { super }
    end

    class << self
      # Nil lets Ruby compile the file.
      def load_iseq(path)
        @rubygems ||= defined?(Gem::Specification) && Gem::Specification.singleton_class.prepend(KeptDefaults)
        return unless (kept = kept(path, $VERBOSE.inspect))

        File.exist?(kept) ? load_from_binary(File.binread(kept)) : compile_file(path).tap { |compiled| keep(compiled.to_binary, kept) }
      rescue SystemCallError, IOError # no descriptors left, another user
        nil
      end

      # The block loads the specifications.
      def load_defaults
        kept = kept(Gem.default_specifications_dir, "defaults")
        return yield unless kept && (known = Gem.instance_variable_get(:@path_to_default_spec_map))&.empty?

        # A process of the same run has written it.
        return restore(*Marshal.load(File.binread(kept)), known) if File.exist?(kept) # rubocop:disable Security/MarshalLoad

        yield
        keep(Marshal.dump(defaults(known)), kept) if known.values.none?(&:activated?)
      end

      private

      # Where to keep something of a file or a folder; nil for nowhere.
      def kept(path, kind)
        return unless @folders && path.start_with?(*@folders)

        source = File.stat(path)
        File.join(@kept, "#{path.tr("/", "%")}-#{source.mtime.strftime("%s.%N")}-#{source.size}-#{kind}")
      end

      # Returns the variables of each specification, and the position of the specification for each path. Specifications that Marshal
      # dumps itself have lost their files.
      def defaults(known)
        all = known.values.uniq
        variables = all.map { |one| one.instance_variables.to_h { |name| [name, one.instance_variable_get(name)] } }
        [variables, known.transform_values { |one| all.index(one) }]
      end

      def restore(variables, positions, known)
        all = variables.map do |values|
          Gem::Specification.allocate.tap { |one| values.each { |name, value| one.instance_variable_set(name, value) } }
        end
        positions.each { |path, position| known[path] = all[position] }
        all.each { |one| Gem::Specification.instance_variable_get(:@load_cache)&.store(one.loaded_from, one) }
      end

      def keep(bytes, name)
        Dir.mkdir(@kept) unless File.exist?(@kept)
        File.binwrite("#{name}.#{Process.pid}", bytes)
        File.rename("#{name}.#{Process.pid}", name)
      rescue SystemCallError, IOError
        nil
      end
    end
  end
end

# As Ruby does, in its order; Bundler may have come first. Each line does nothing if Ruby has done it.
require "rubygems"
require "bundled_gems" if RUBY_VERSION >= "3.3"
require "error_highlight"
require "did_you_mean"
require "syntax_suggest/core_ext" if RUBY_VERSION >= "3.2"
