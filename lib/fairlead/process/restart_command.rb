# frozen_string_literal: true

require "rbconfig"

module Fairlead
  # The command that has started this process, so that it can be run again: the same words, in the same folder. If the folder is
  # a symbolic link to a release, the link is resolved again. Bundler's setup for the old release is left out; see BundleExec.
  class RestartCommand
    # Variables that are for this process only.
    PRIVATE = [*Inherited::SYSTEMD, "FAIRLEAD_SPAWNER"].freeze

    class << self
      # Notes the command of this process; call it before anything changes its folder, its title or its environment. Later calls
      # change nothing.
      def note(environment = ENV)
        return @current if @current

        words = without_file_beside(words_of_process)
        bundle = BundleExec.new(words.join(" ").strip, environment)
        variables = original(environment)
        if bundle.any?
          words = bundle.words([RbConfig.ruby, *words.drop(1)])
          variables = variables.except("BUNDLE_GEMFILE").merge({ "BUNDLE_GEMFILE" => bundle.gemfile }.compact)
        end
        @current = new(words.one? ? [] : [RbConfig.ruby, *words.drop(1)], folder(environment), variables)
      end

      # The noted command. Raises RuntimeError if none was noted.
      def current = @current || raise("RestartCommand.note was not called")

      private

      # The words as the system shows them, with the flags of Ruby. A program that has changed its title shows one word: without
      # the others, Ruby would run its standard input.
      def words_of_process
        File.binread("/proc/self/cmdline").split("\0")
      rescue SystemCallError
        [RbConfig.ruby, $PROGRAM_NAME, *ARGV].map(&:b)
      end

      # A process that runs beside another one starts further processes in the same way.
      def without_file_beside(words)
        words[-2] == "-P" && words.last.match?(OF_SPAWNER) ? words[...-2] : words
      end

      # The shell's name for the current folder, which keeps the symbolic links.
      def folder(environment)
        named = environment["PWD"].to_s
        File.identical?(named, ".") ? named : Dir.pwd
      rescue Errno::ENOENT
        raise Error, "the current folder has been removed; change to one that exists"
      end

      # The environment without Bundler's additions. The new process finds the Gemfile of its folder again.
      def original(environment)
        variables = environment.to_h.except(*PRIVATE)
        kept = variables.filter_map { |name, value| [name.delete_prefix("BUNDLER_ORIG_"), value] if name.start_with?("BUNDLER_ORIG_") }.to_h
        variables = variables.reject { |name, _| name.start_with?("BUNDLER_ORIG_") }.merge(kept)
        variables = variables.reject { |_, value| value == "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL" }
        own_gemfile?(variables["BUNDLE_GEMFILE"]) ? variables.except("BUNDLE_GEMFILE") : variables
      end

      def own_gemfile?(path)
        BundleExec::GEMFILES.include?(File.basename(path.to_s)) && File.identical?(File.dirname(path), ".")
      end
    end

    attr_reader :words, :folder, :environment

    # Runs a command with its own pid file, beside a process that has the file of the first word.
    BESIDE = 'exec "$@" -P "$0.spawner$$"'

    # Flags for rackup or Rails to leave the terminal; that has already happened.
    DAEMON = %w[-D --daemonize -d --daemon].freeze

    # The end of the path of the pid file above.
    OF_SPAWNER = /\.spawner\d+\z/

    # +environment+: of the process that is started.
    def initialize(words, folder, environment)
      @words = words.map { |word| word.dup.freeze }.freeze
      @folder = folder
      @environment = environment.dup.freeze
    end

    # Uses other words from now on: a command line, or its words.
    def words=(words)
      require "shellwords"
      words = Shellwords.split(words) if words.is_a?(String)
      @words = words.dup.freeze
    end

    # The command belongs to another program, such as rackup or `rails server`. If that program has written +pid_file+, it will
    # write it again before it knows its role, and refuses to start if the file names a running process. +command+: the command
    # that starts the program again. +daemon+: true if it has left the terminal; new code beside it must not do so.
    def foreign(pid_file: nil, command: nil, daemon: false)
      require "shellwords"
      @words = @words.reject { |word| DAEMON.include?(word) }.freeze if daemon
      @foreign = command ? Shellwords.split(command) : @words
      @pid_file = pid_file&.sub(OF_SPAWNER, "")
    end

    # The absolute path of the pid file that another program, such as rackup, has written for itself; nil if there is none.
    def pid_file = (SystemText.absolute(@pid_file, @folder) if @pid_file)

    # The words that start the command in a process beside this one, which keeps its pid file.
    def words_beside = writes_pid_file? ? ["/bin/sh", "-c", BESIDE, @pid_file, *words] : words

    private

    def writes_pid_file? = @pid_file && words == @foreign
  end
end
