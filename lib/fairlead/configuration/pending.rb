# frozen_string_literal: true

module Fairlead
  class Configuration
    # Puma's methods that Fairlead does not have yet. A configuration file that calls one still loads, with a warning.
    module Pending
      OPTIONS = %i[
        activate_control_app bind_to_activated_sockets clean_thread_locals custom_logger debug drain_on_shutdown enable_keep_alives
        fiber_per_request force_shutdown_after fork_worker idle_timeout log_formatter lowlevel_error_handler max_fast_inline
        max_keep_alive plugin rack_url_scheme raise_exception_on_sigterm restart_command set_remote_address shutdown_debug
        state_path state_permission stdout_redirect supported_http_methods worker_check_interval worker_culling_strategy
      ].freeze

      HOOKS = %i[after_refork after_worker_shutdown before_refork before_restart on_refork on_restart out_of_band].freeze

      # The names that are neither options nor hooks.
      NAMES = (OPTIONS + HOOKS - Options.flat_map(&:methods_in_file) - Hooks::NAMES.keys - Hooks::ALIASES.keys).freeze
    end
  end
end
