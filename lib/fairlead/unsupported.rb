# frozen_string_literal: true

module Fairlead
  # Rubies and systems for which Fairlead does not exist. Loaded by them, so this file uses nothing else.
  module Unsupported
    WINDOWS = /mswin|mingw|cygwin/

    # One line that says what to do; nil if Fairlead can run.
    def self.problem(engine: RUBY_ENGINE, platform: RUBY_PLATFORM)
      if engine != "ruby"
        "Fairlead needs CRuby, because its extension calls the C functions of CRuby; this is #{engine}. Use CRuby, or the server Puma."
      elsif platform.match?(WINDOWS)
        "Fairlead does not run on Windows (#{platform}), because workers are forked. Use the Windows Subsystem for Linux (WSL), or the server Puma."
      end
    end
  end
end
