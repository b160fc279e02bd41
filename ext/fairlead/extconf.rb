# frozen_string_literal: true

# Builds the extension and the native programs of the server (crates/supervisor, crates/acme) when the gem `fairlead` is installed.

require_relative "../../lib/fairlead/unsupported"

problem = Fairlead::Unsupported.problem
abort problem if problem

require_relative "../cargo_makefile"
CargoMakefile.write(%w[fairlead fairlead-supervisor fairlead-acme])
