# frozen_string_literal: true

module Fairlead
  # `fairlead migrate`: writes a configuration file for Fairlead that is equivalent to a file for Puma. Configuration::Migration
  # rewrites the text.
  class Migrate
    USAGE = <<~TEXT
      Usage: fairlead migrate [--force] [--stdout | -] [config/puma.rb]

      Writes config/fairlead.rb, which means the same as config/puma.rb and takes its place; for config/puma/NAME.rb it
      writes config/fairlead/NAME.rb. Fairlead reads config/puma.rb too, so there is no need to do this.

          --force        Replaces a file that exists.
          --stdout, -    Prints the text instead.
    TEXT

    DEFAULT = "config/puma.rb"

    # Runs the command and returns its exit status.
    def self.run(arguments, output: $stdout, errors: $stderr) = new(arguments, output, errors).run

    def initialize(arguments, output, errors)
      @output = output
      @errors = errors
      @flags, paths = arguments.partition { |argument| argument.start_with?("-") }
      @source = paths.first || DEFAULT
      unknown = (@flags - %w[--force --stdout - -h --help]) + paths.drop(1)
      @unknown = unknown.first
    end

    def run
      return print(USAGE) if @flags.intersect?(%w[-h --help])

      refuse_unknown if @unknown
      migration = Configuration::Migration.new(source_text, @source)
      text = migration.to_s
      migration.warnings.each { |warning| EventLog.new(errors: @errors).warning(warning) }
      return print(text) if @flags.intersect?(%w[--stdout -])

      write(text)
      print("#{target} takes the place of #{@source}; `fairlead --check` shows what it means\n#{hidden}")
    end

    private

    def refuse_unknown
      what = @unknown.start_with?("-") ? "unknown option" : "unexpected argument"
      problem("#{what}; see fairlead migrate --help", @unknown)
    end

    def print(text) = CLI.print(text, @output)

    def source_text
      File.read(@source, encoding: "UTF-8")
    rescue SystemCallError => e
      problem("cannot be read (#{e.class.name.delete_prefix("Errno::")})", @source)
    end

    # The same name, with "fairlead" instead of "puma".
    def target
      @target ||= @source.include?("puma") ? @source.sub(/puma(?!.*puma)/, "fairlead") : "config/fairlead.rb"
    end

    def write(text)
      problem("there is such a file; replace it with --force", target) if File.exist?(target) && !@flags.include?("--force")

      Dir.mkdir(File.dirname(target)) unless File.directory?(File.dirname(target))
      File.write(target, text)
    rescue SystemCallError => e
      problem("cannot be written (#{e.class.name.delete_prefix("Errno::")})", target)
    end

    # config/fairlead.rb comes before config/puma/production.rb.
    def hidden
      return unless target == "config/fairlead.rb"

      files = Dir.glob("config/puma/*.rb").sort.reject { |path| File.exist?(path.sub("puma", "fairlead")) }
      files.map { |path| "#{path} is not read any more; run fairlead migrate #{path}\n" }.join
    end

    def problem(message, origin = nil)
      raise ConfigurationError, [ConfigurationError::Problem.new(nil, origin, message)]
    end
  end
end
