# frozen_string_literal: true

module Fairlead
  class Configuration
    # Puma's methods that Fairlead does not have yet. A configuration file that calls one still loads, with a warning.
    module Pending
      KNOWN = %i[clean_thread_locals drain_on_shutdown fiber_per_request out_of_band shutdown_debug].freeze

      # Those that are still missing.
      NAMES = (KNOWN - Options.flat_map(&:methods_in_file) - Hooks::NAMES.keys - Hooks::ALIASES.keys - Accepted.map(&:name)).freeze
    end
  end
end
