# frozen_string_literal: true

module Fairlead
  # The load tool behind `fairlead bench`: a native program, built from crates/load.
  module LoadTool
    # The path below a folder of the load path.
    PROGRAM = "fairlead/fairlead-load"

    module_function

    # Replaces this process with the load tool.
    def run(arguments)
      path = find
      exec([path, path], *arguments)
    end

    # The path of the program. Raises ExtensionError if it is not built.
    def find(folders = $LOAD_PATH) = NativeProgram.find(PROGRAM, "the load tool", folders)
  end
end
