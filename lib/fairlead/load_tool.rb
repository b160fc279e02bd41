# frozen_string_literal: true

module Fairlead
  # The load tool behind `fairlead bench`: a native program, built from crates/load. bin/setup builds it in a checkout; users install the
  # gem `fairlead-load`, or the program itself.
  module LoadTool
    # The path below a folder of the load path.
    PROGRAM = "fairlead/fairlead-load"

    # The gem, and the program on the PATH.
    NAME = "fairlead-load"

    module_function

    # Replaces this process with the load tool. On the PATH, it may be a Ruby program of a gem that is not in the bundle.
    def run(arguments)
      start = -> { exec([find, "fairlead bench"], *arguments) }
      defined?(Bundler) ? Bundler.with_unbundled_env(&start) : start.call
    end

    # The path of the program: in the load path, in the newest installed gem, or on the PATH. Raises ExtensionError if there is none.
    def find(folders = $LOAD_PATH, path: ENV.fetch("PATH", ""))
      places = [*in_each(folders, PROGRAM), *in_each(gem_folders, PROGRAM), *in_each(path.split(File::PATH_SEPARATOR), NAME)]
      places.find { |place| NativeProgram.runs?(place) } ||
        raise(ExtensionError, "the load tool is not installed: run `gem install fairlead-load`, or bin/setup in a checkout")
    end

    def in_each(folders, name) = folders.map { |folder| File.join(folder, name) }

    # Bundler shows only gems of the bundle.
    def gem_folders
      return [] unless defined?(Gem::Specification)

      Gem::Specification.find_all_by_name(NAME).max_by(&:version)&.full_require_paths.to_a
    end
    private_class_method :in_each, :gem_folders
  end
end
