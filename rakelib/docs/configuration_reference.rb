# frozen_string_literal: true

require "fairlead"

module Docs
  # docs/guides/configuration.md, made from the table of options and the list of hooks. `rake docs:configuration` writes it.
  module ConfigurationReference
    INTRODUCTION = <<~MARKDOWN
      # Configuration

      <!-- Made from lib/fairlead/options.rb by `rake docs:configuration`; changes here are lost. -->

      An option can be given on the command line, in a configuration file or by an environment variable. The command line
      wins over the file, the file over the environment, and the environment over the default. `fairlead --check` reads all
      of them, reports every problem, and prints each value and its source; `fairlead --help` lists the flags.

      The configuration file is the first of `config/fairlead/ENVIRONMENT.rb`, `config/fairlead.rb`,
      `config/puma/ENVIRONMENT.rb` and `config/puma.rb`; `-C` names another one. It is Ruby, and every option is a method:

      ```ruby
      workers :auto
      threads 1, 5
      bind "tcp://127.0.0.1:3000"
      pid_file ENV["PIDFILE"]
      head_max_bytes "32k"

      before_worker_boot { |index| ActiveRecord::Base.establish_connection }
      ```

      A value may be a String, as from an environment variable. `nil` does not change the option. If you give an option
      again, the last value counts, except for `bind`, `port` and the others that may be given several times: these add a
      value. Values from the command line replace those from the file. Times are in seconds. Sizes are in bytes, or have a
      suffix for powers of 1024: `64k`, `10m`, `1g`. Switches are `true` or `false`, and on the command line `--preload` or
      `--no-preload`.

      Relative paths begin at the folder in which the server runs (`directory`), wherever they are given. Only the paths of `-C` and `--dir`
      begin at the current folder. A `~` at the beginning stands for the home folder of the user.

      A file may use Puma's names instead of ours, whatever it is called; [migrating_from_puma.md](migrating_from_puma.md)
      lists them. A method without effect in Fairlead is accepted with a warning. A file may also call `load "other.rb"`, `get
      :workers`, `single { }` and `cluster { }` for what counts without or with workers, and `app { |env| }` in place of a
      rackup file.
    MARKDOWN

    HOOKS = <<~MARKDOWN
      ## Hooks

      A block given to one of these in the configuration file runs at that point. Several blocks run in the order in which
      they were given. If a block raises, the exception is logged and the server goes on. Without workers, `before_fork`
      and the hooks with `worker` in their names do not run.

      | hook | runs |
      |---|---|
    MARKDOWN

    class << self
      # The text of the file.
      def markdown
        [INTRODUCTION, *Fairlead::Options.groups.map { |group| section(group) }, hooks].join("\n")
      end

      private

      def section(group)
        ["## #{group}\n", *Fairlead::Options.select { |entry| entry.group == group }.map { |entry| describe(entry) }].join("\n")
      end

      def describe(entry)
        lines = [given(entry), value(entry), fallback(entry)].compact.map { |line| "- #{line}\n" }
        "### #{entry.name}\n\n#{wrap(entry.doc)}\n\n#{lines.join}"
      end

      # All ways to set an option, such as "`workers "auto"`, `-w N`, `--workers N`, `WEB_CONCURRENCY`".
      def given(entry)
        file = [entry.example, *entry.aliases] if entry.in_file?
        code([*file, *flags(entry), *entry.variables])
      end

      def flags(entry)
        return [] unless entry.flag?
        return [*entry.short, *entry.long_flags.map { |name| "--[no-]#{name}" }] if entry.boolean?

        names = [*entry.short, *entry.long_flags.map { |name| "--#{name}" }, *entry.foreign_flags]
        names.map { |flag| "#{flag} #{entry.placeholder}".sub(" =", "") }
      end

      def value(entry)
        entry.type.expectation if entry.is_a?(Fairlead::Options::Option)
      end

      def fallback(entry)
        "default: #{entry.shown_default}" if entry.is_a?(Fairlead::Options::Option)
      end

      def hooks
        rows = Fairlead::Hooks::NAMES.map do |name, place|
          others = Fairlead::Hooks::ALIASES.select { |_, original| original == name }.keys
          "| #{code([name, *others])} | #{place} |\n"
        end
        HOOKS + rows.join
      end

      def code(words) = words.map { |word| "`#{word}`" }.join(", ")

      def wrap(text) = text.gsub(/(.{1,120})(\s+|\z)/, "\\1\n").chomp
    end
  end
end
