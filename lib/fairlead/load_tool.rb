# frozen_string_literal: true

module Fairlead
  # The load tool behind `fairlead bench`: a native program, built from crates/load.
  module LoadTool
    # The path below a folder of the load path. bin/setup and RubyGems put the program beside this file; some versions of
    # RubyGems put it into the gem's folder for extensions.
    PROGRAM = "fairlead/fairlead-load"

    module_function

    # Replaces this process with the load tool.
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
