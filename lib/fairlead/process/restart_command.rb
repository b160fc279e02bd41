# frozen_string_literal: true

module Fairlead
  # The command that has started this process, so that it can be run again: the same words, in the same folder. If that is a
  # symbolic link to a release, it is followed anew. What Bundler has set up for the old release is left out; see BundleExec.
  class RestartCommand
    # Variables that are for this process only.
    PRIVATE = [*Inherited::SYSTEMD, "FAIRLEAD_SPAWNER"].freeze

    class << self
      # Notes the command of this process; to be called before anything changes its folder, its title or its environment.
      # Later calls change nothing.
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

      # The one that was noted. Raises RuntimeError if none was.
      def current = @current || raise("RestartCommand.note was not called")

      private

      # The words as the system has them, with the flags of Ruby. A program that has given itself a title shows one word: without the
      # others, Ruby would run its standard input.
      def words_of_process
        File.binread("/proc/self/cmdline").split("\0")
      rescue SystemCallError
        [RbConfig.ruby, $PROGRAM_NAME, *ARGV].map(&:b)
      end

      # A process that was started beside another one starts further ones as that one does.
      def without_file_beside(words)
        words[-2] == "-P" && words.last.match?(OF_SPAWNER) ? words[...-2] : words
      end

      # The shell's name for the current folder, which has the symbolic links.
      def folder(environment)
        named = environment["PWD"].to_s
        File.identical?(named, ".") ? named : Dir.pwd
      rescue Errno::ENOENT
        raise Error, "the current folder has been removed; change to one that exists"
      end

      # The environment without what Bundler has put there. The Gemfile of this folder is found again in the new one.
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

    # Runs a command with a pid file of its own, beside a process that has the file of the first word.
    BESIDE = 'exec "$@" -P "$0.spawner$$"'

    # Has rackup or Rails leave the terminal, which has happened already.
    DAEMON = %w[-D --daemonize -d --daemon].freeze

    # The end of the path of that file.
    OF_SPAWNER = /\.spawner\d+\z/

    # +environment+: of the process that it starts.
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

    # The command is that of another program, such as rackup or `rails server`. If that has written +pid_file+, it will do so again,
    # before it knows what it is to be, and refuses to start when it finds that of a process that runs. +command+: what it says to start
    # it again with. +daemon+: whether it has left the terminal, which new code beside it is not to do.
    def foreign(pid_file: nil, command: nil, daemon: false)
      require "shellwords"
      @words = @words.reject { |word| DAEMON.include?(word) }.freeze if daemon
      @foreign = command ? Shellwords.split(command) : @words
      @pid_file = pid_file&.sub(OF_SPAWNER, "")
    end

    # The absolute path of the pid file that another program, such as rackup, has written for itself; nil if there is none.
    def pid_file = (SystemText.absolute(@pid_file, @folder) if @pid_file)

    # The words that start it as a process beside this one, which keeps its pid file.
    def words_beside = writes_pid_file? ? ["/bin/sh", "-c", BESIDE, @pid_file, *words] : words

    private

    def writes_pid_file? = @pid_file && words == @foreign
  end
end
