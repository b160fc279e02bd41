# frozen_string_literal: true

require "rbconfig"

module Fairlead
  # A command that was started by `bundle exec`. It only runs in its bundle: the program that RubyGems has put on the PATH does
  # not know a Gemfile. So Bundler has to run it again, and finds the Gemfile of the folder again.
  #
  # `bundle exec` either loads the program into its own process, and then gives it another title; or it replaces itself by the
  # program, and leaves a trace in RUBYOPT. A program that sets up its bundle itself, such as bin/rails, needs neither.
  class BundleExec
    SETUP = %r{-r\s*\S*bundler/setup}
    GEMFILES = %w[Gemfile gems.rb].freeze

    # +title+: the command line of this process, as the system shows it. +environment+: its variables.
    def initialize(title, environment, started_with: nil)
      @title = title.b
      @environment = environment
      @started_with = started_with || environment_of_start
    end

    # True if `bundle exec` has started this process.
    def any? = File.file?(bundler) && (loaded? || @started_with["RUBYOPT"].to_s.match?(SETUP))

    # The words that run the command again. +words+: the words of this process.
    def words(words)
      words = [RbConfig.ruby, $PROGRAM_NAME, *arguments] if loaded?
      [RbConfig.ruby, bundler, "exec", *named(words)]
    end

    # The Gemfile, if Bundler would not find it without its name; otherwise nil. Another name in the folder of the server stays
    # the same in the next release.
    def gemfile
      path = @environment["BUNDLE_GEMFILE"].to_s
      return if path.empty? || (GEMFILES.include?(File.basename(path)) && above?(File.dirname(path)))

      File.identical?(File.dirname(path), ".") ? File.basename(path) : path
    end

    private

    def bundler = @environment["BUNDLE_BIN_PATH"].to_s

    def loaded? = !defined?(::Bundler::CLI::Exec).nil? && @title.start_with?($PROGRAM_NAME.b)

    # The program may have changed ARGV already; the title has no marks between words.
    def arguments
      @title == [$PROGRAM_NAME, *ARGV].map(&:b).join(" ").strip ? ARGV.dup : @title.delete_prefix($PROGRAM_NAME.b).split
    end

    # A program from the PATH is looked up there again, since the program of the old release may be removed.
    def named(words)
      name = File.basename(words[1].to_s)
      words[1]&.b == on_path(name)&.b ? [name, *words.drop(2)] : words
    end

    def on_path(name)
      folders = @environment.fetch("PATH", "").b.split(File::PATH_SEPARATOR)
      folders.map { |folder| File.join(folder.b, name.b) }.find { |path| File.file?(path) && File.executable?(path) }
    end

    def above?(folder)
      require "pathname"
      Pathname.pwd.ascend.any? { |above| File.identical?(above, folder) }
    end

    def environment_of_start
      File.binread("/proc/self/environ").split("\0").to_h { |entry| entry.partition("=").values_at(0, 2) }
    rescue SystemCallError
      {}
    end
  end
end
