# frozen_string_literal: true

require "optparse"

module Fairlead
  class Configuration
    # The arguments of `fairlead`: the options of the table, and a few flags that are not options, such as --version.
    class Flags < Layer
      autoload :Guess, "fairlead/configuration/flags/guess"

      BANNER = <<~TEXT
        Usage: fairlead [options] [config.ru]
               fairlead bench [options] URL     measures a server; see fairlead bench --help
               fairlead migrate [options] FILE  turns a configuration file for Puma into ours; see fairlead migrate --help
               fairlead ctl [options] COMMAND   steers a running server; see fairlead ctl --help
               fairlead top [options]           shows a running server in this terminal; see fairlead top --help
      TEXT

      # OptionParser's own flags begin like this, for shells that complete a flag.
      OPTPARSE = "--*"

      # Words that start a server in other programs.
      STARTING = %w[start server serve run up s].freeze

      # The columns in which the descriptions of --help begin and end.
      COLUMN = 34
      WIDTH = 110

      # :serve, :check, :version or :help
      attr_reader :action

      def self.parse(arguments) = new.tap { |flags| flags.send(:parse, translate(arguments.map { |word| SystemText.decode(word) })) }

      # Replaces foreign flags by ours: OptionParser would read `-www DIR` as `-w ww`. Arguments after `--` are not flags.
      def self.translate(arguments)
        names = Options.flat_map { |entry| entry.foreign_flags.map { |flag| [flag, "--#{entry.long_flags.first}"] } }.to_h
        count = arguments.index("--") || arguments.size
        arguments.take(count).map { |argument| argument.sub(/\A[^=]+/) { |flag| names.fetch(flag, flag) } } + arguments.drop(count)
      end
      private_class_method :translate

      def initialize
        super
        @action = :serve
      end

      # True if the backtrace of an error is shown.
      def debug? = self[:debug] == true

      # The text of --help.
      def help = parser(Options.select(&:flag?), described: true).help

      private

      # OptionParser stops at the first invalid argument; this continues, in order to report all of them.
      def parse(arguments)
        files = []
        parser = parser(possible(arguments))
        begin
          parser.order!(arguments) { |argument| files << argument }
          files.concat(arguments) # after --
        rescue OptionParser::ParseError => e
          parse_failed(e)
          retry
        end
        take_file(files.shift) if files.any?
        files.each { |file| problem(nil, nil, "unexpected argument: #{file}") }
      end

      # The rackup file, or a word that is a command elsewhere.
      def take_file(word)
        return set(:rackup, word, origin: "argument") if homeless?(word)

        path = SystemText.absolute(word, self[:directory] || Dir.pwd)
        return problem(nil, word, "is a folder; name the rackup file in it, or use --dir #{word}") if File.directory?(path)
        return set(:rackup, word, origin: "argument") if File.exist?(path)

        case word
        when "help", "version" then @action = word.to_sym
        when *STARTING then problem(nil, word, "unknown command; `fairlead` without one starts the server, see fairlead --help")
        when *Control::Tool::COMMANDS.keys then problem(nil, word, "unknown command; use fairlead ctl #{word}, which steers a running server")
        else set(:rackup, word, origin: "argument")
        end
      end

      def parse_failed(error)
        flag = error.args.first
        message = Guess.of(flag) if error.is_a?(OptionParser::AmbiguousOption) || error.is_a?(OptionParser::InvalidOption)
        problem(nil, flag, message || error.reason)
      end

      # The entries that +arguments+ may name, and some more: to declare all takes longer than to read the configuration. A long flag may
      # be shortened to its first letter, and a dash may be followed by several short flags.
      def possible(arguments)
        entries = Options.select(&:flag?)
        words = arguments.grep(/\A-/)
        return entries if words.any? { |word| word.start_with?(OPTPARSE) }

        letters = words.flat_map { |word| word.start_with?("--") ? [word[2]] : word.chars }.compact.map { |letter| initial(letter) }
        entries.select { |entry| letters.intersect?(initials(entry)) }
      end

      # "n" stands for "--no-".
      def initials(entry)
        flags = [*entry.short, *entry.long_flags, *("no" if entry.boolean? || entry.name == :config)]
        flags.map { |flag| initial(flag.delete("-")) }
      end

      # OptionParser ignores the case, also of letters such as "ﬁ".
      def initial(text) = text.downcase(:fold)[0]

      # +described+: with the texts of --help.
      def parser(entries, described: false)
        OptionParser.new(BANNER, COLUMN) do |parser|
          entries.group_by(&:group).each do |group, members|
            parser.separator("\n#{group}")
            members.each { |entry| declare(parser, entry, described ? description(entry) : []) }
          end
          declare_actions(parser)
          declare_accepted(parser)
        end
      end

      def declare(parser, entry, description)
        origin = "--#{entry.long_flags.first}"
        parser.on(*entry.short, *long_flags(entry), *description) { |value| set(entry.name, *value, origin: origin) }
        return unless entry.name == :config

        parser.on("--no-config", "Reads no configuration file.") { set(:config, "-", origin: "--no-config") }
      end

      def long_flags(entry)
        return entry.long_flags.map { |flag| "--[no-]#{flag}" } if entry.boolean?

        entry.long_flags.map { |flag| "--#{flag}#{" " unless entry.placeholder.start_with?("=")}#{entry.placeholder}" }
      end

      def description(entry)
        text = entry.summary
        text += " (#{entry.shown_default})" if entry.shown_default && entry.shown_default != "none"
        wrap(text.delete("`"))
      end

      def wrap(text) = text.scan(/\S.{0,#{WIDTH - COLUMN - 8}}(?=\s|\z)/)

      def declare_actions(parser)
        parser.separator("\nOthers")
        parser.on("-I", "--include PATHS", "Adds these folders (separated by :) to the load path.") do |paths|
          include_folders(paths.split(File::PATH_SEPARATOR))
        end
        parser.on("--check", "Checks and prints the configuration, with the source of each value.") { @action = :check }
        parser.on("-V", "--version", "Prints the version.") { @action = :version }
        parser.on("-h", "--help", "Prints this.") { @action = :help }
      end

      # With an unknown home folder, every `require` would raise.
      def include_folders(folders)
        unknown, known = folders.partition { |folder| homeless?(folder) }
        unknown.each { |folder| problem(nil, "-I", "#{folder} #{SystemText::HOMELESS}") }
        $LOAD_PATH.unshift(*known)
      end

      def homeless?(folder)
        SystemText.absolute(folder) && false
      rescue ArgumentError
        true
      end

      def declare_accepted(parser)
        parser.separator("\nWithout effect, for scripts that start Puma")
        Accepted.flags.each do |entry|
          origin = entry.flags.last[/\A[\w-]+/]
          parser.on(*entry.flags, *wrap("#{entry.instead[0].upcase}#{entry.instead[1..]}.")) do
            warning(entry.name, "#{origin}: #{entry.warning([])}")
          end
        end
      end
    end
  end
end
