# frozen_string_literal: true

# The object on which a configuration file is evaluated. Its class is not nested in the modules of Fairlead and has no
# constants, so that File or Server means the same in the file as anywhere else.
class Fairlead::Configuration::Script # rubocop:disable Style/ClassAndModuleChildren
  class << self
    # Evaluates +text+, the text of +file+ (a ConfigFile), and sets its options and hooks there.
    def evaluate(file, text)
      new(file).instance_eval(text, file.path, 1)
    end
  end

  def initialize(file)
    @file = file
  end

  Fairlead::Options.select(&:in_file?).each do |entry|
    entry.methods_in_file.each do |name|
      define_method(name) do |*arguments, &block|
        arguments = [block] if block && arguments.compact.empty?
        @file.set(entry.name, *arguments, origin: @file.here)
      end
    end
  end

  [*Fairlead::Hooks::NAMES.keys, *Fairlead::Hooks::ALIASES.keys].each do |name|
    define_method(name) do |&block|
      block ? @file.hooks.add(name, block) : @file.problem(name, @file.here, "needs a block")
    end
  end

  # A misspelt option becomes a problem, with its line, and the rest of the file is still read.
  def method_missing(name, *arguments, **_keywords)
    arguments.empty? && !name.end_with?("!") ? super : @file.unknown(name)
  end

  def respond_to_missing?(*) = false

  def inspect = "the configuration file"
end
