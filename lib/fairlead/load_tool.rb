# frozen_string_literal: true

module Fairlead
  # The load tool behind `fairlead bench`: a native program of its own, built from crates/load.
  module LoadTool
    # Below a folder of the load path: bin/setup puts it beside this file, as RubyGems does, or into the folder that
    # RubyGems keeps for extensions.
    PROGRAM = "fairlead/fairlead-load"

    module_function

    # Becomes the load tool: this process ends with it, and signals are the tool's own.
    def run(arguments)
      path = find
      exec([path, path], *arguments)
    end

    # The path of the program. Raises ExtensionError when it is not built.
    def find(folders = $LOAD_PATH)
      paths = folders.lazy.map { |folder| File.join(folder, PROGRAM) }
      paths.find { |path| File.file?(path) && File.executable?(path) } ||
        raise(ExtensionError, "the load tool is not built: run bin/setup in a checkout, or `gem pristine fairlead` for an installed gem")
    end
  end
end
