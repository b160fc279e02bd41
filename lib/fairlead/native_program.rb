# frozen_string_literal: true

module Fairlead
  # The native programs of Fairlead. bin/setup and RubyGems put them beside this file; some versions of RubyGems put them into
  # the gem's folder for extensions.
  module NativeProgram
    # The path of a program. +name+: below a folder of the load path. +title+: for people. Raises ExtensionError if it is not
    # built.
    def self.find(name, title, folders = $LOAD_PATH)
      paths = folders.lazy.map { |folder| File.join(folder, name) }
      paths.find { |path| runs?(path) } ||
        raise(ExtensionError, "#{title} is not built: run bin/setup in a checkout, or `gem pristine fairlead` for an installed gem")
    end

    # True for a file that can be executed.
    def self.runs?(path) = File.file?(path) && File.executable?(path)
  end
end
