# frozen_string_literal: true

require "did_you_mean"

# The object on which a configuration file is evaluated. Its class is not nested in the modules of Fairlead and has no
# constants, so that File or Server means the same in the file as anywhere else.
class Fairlead::Configuration::Script # rubocop:disable Style/ClassAndModuleChildren
  include Fairlead::Configuration::AcceptedMethods

  def initialize(file)
    @file = file
    @options = Fairlead::Configuration::PumaOptions.new(file)
    @config = Fairlead::Configuration::Draft.new(file)
  end

  # Options with these names replace the methods without effect.
  Fairlead::Options.select(&:in_file?).each do |entry|
    entry.methods_in_file.each do |name|
      define_method(name) do |*arguments, &block|
        arguments = [] if block && arguments.compact.empty?
        @file.set(entry.name, *arguments, *block, origin: name == entry.name ? @file.here : @file.here_as(name))
      end
    end
  end

  # +key+ is for blocks that share a Hash: in each process, blocks with the same key get the same Hash.
  [*Fairlead::Hooks::NAMES.keys, *Fairlead::Hooks::ALIASES.keys].each do |name|
    define_method(name) do |key = nil, &block|
      block ? @file.hook(name, key, block) : @file.problem(name, @file.here, "needs a block")
    end
  end

  include Fairlead::Configuration::PumaMethods

  class << self
    # The method name that +name+ may be a misspelling of, or nil.
    def guess(name)
      names = Fairlead::Options.flat_map(&:methods_in_file) + Fairlead::Hooks::NAMES.keys
      DidYouMean::SpellChecker.new(dictionary: names.map(&:to_s)).correct(name.to_s).first
    end

    # DefaultRackup is the rackup file, in files for Puma 5 and older; it exists only here. A file that names Puma gets a
    # substitute.
    def const_missing(name)
      case name
      when :DefaultRackup then "config.ru"
      when :Puma
        require_relative "../compat/puma"
        Puma
      else super
      end
    end
  end

  # A misspelt option becomes a problem, with its line, and the rest of the file is still read.
  def method_missing(name, *arguments, **_keywords)
    arguments.empty? && !name.end_with?("!") ? super : @file.unknown(name)
  end

  def respond_to_missing?(*) = false

  def inspect = "the configuration file"
end
