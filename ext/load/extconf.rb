# frozen_string_literal: true

# Builds the load tool (crates/load) when the gem `fairlead-load` is installed.

require_relative "../cargo_makefile"

CargoMakefile.write(%w[fairlead-load])
