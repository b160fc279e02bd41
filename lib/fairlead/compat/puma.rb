# frozen_string_literal: true

require "fairlead"
require_relative "names"

Fairlead::Compat.claim(:Puma, "puma")

# The parts of Puma that plugins and monitoring gems use, on Fairlead. Loaded with the first plugin for Puma; no other file
# defines the constant, because some gems use it to find out which server they run in. An application that only wants
# `Puma.stats` requires fairlead/compat/puma itself.
module Puma
  # The parts of Puma that these files replace, so that `require "puma/plugin"` loads nothing.
  PARTS = %w[puma puma/const puma/dsl puma/events puma/launcher puma/log_writer puma/plugin].freeze
  $LOADED_FEATURES.concat(PARTS.map { |name| "#{name}.rb" } - $LOADED_FEATURES)

  # The version with this interface.
  module Const
    PUMA_VERSION = VERSION = Fairlead::Control::PumaStats::PUMA
    CODE_NAME = "Fairlead #{Fairlead::VERSION}".freeze
  end

  # A plugin file opens this class to add methods to the configuration file.
  DSL = Fairlead::Configuration::Script

  class << self
    # The statistics in Puma's form, as JSON; in workers too.
    def stats
      require "json"
      JSON.generate(stats_hash)
    end

    # The same with Symbols.
    def stats_hash = Fairlead::Control::OwnStats.to_h

    # The configuration of the command line; nil in a program that contains a Fairlead::Server.
    def cli_config = Config.current

    def forkable? = Process.respond_to?(:fork)
    def jruby? = false
    def mri? = true
    def windows? = false

    # Names the current thread.
    def set_thread_name(name) # rubocop:disable Naming/AccessorMethodName -- Puma's name
      Thread.current.name = "puma #{name}"
    end
  end
end

require_relative "puma/events"
require_relative "puma/log_writer"
require_relative "puma/config"
require_relative "puma/launcher"
require_relative "puma/plugin"
