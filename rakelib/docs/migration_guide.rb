# frozen_string_literal: true

require "fairlead"

module Docs
  # The table in docs/guides/migrating_from_puma.md of the methods of a configuration file for Puma, generated from the
  # options, the hooks and the methods without effect. `rake docs:configuration` writes it.
  module MigrationGuide
    BEGINNING = "<!-- Made by `rake docs:configuration`; changes here are lost. -->\n"
    HEAD = "| Puma | Fairlead | difference |\n|---|---|---|\n"
    ENDING = "<!-- end -->\n"

    # Heading => Puma's methods, including old names.
    METHODS = {
      "Listening" => %i[bind port ssl_bind set_default_host default_host clear_binds! bind_to_activated_sockets rack_url_scheme
                        set_remote_address],
      "Processes and threads" => %i[workers threads preload_app! fork_worker worker_timeout worker_boot_timeout worker_shutdown_timeout
                                    worker_check_interval worker_culling_strategy wait_for_less_busy_worker max_io_threads
                                    fiber_per_request clean_thread_locals nakayoshi_fork],
      "The application" => %i[rackup app environment directory prune_bundler extra_runtime_dependencies early_hints],
      "Requests and connections" => %i[persistent_timeout first_data_timeout queue_requests max_keep_alive max_fast_inline enable_keep_alives
                                       http_content_length_limit supported_http_methods lowlevel_error_handler allow_underscore_headers
                                       io_selector_backend tcp_mode],
      "Start, end and restarts" => %i[pidfile state_path state_permission tag daemonize restart_command raise_exception_on_sigterm
                                      force_shutdown_after drain_on_shutdown idle_timeout],
      "Logs" => %i[log_requests quiet debug stdout_redirect custom_logger log_formatter shutdown_debug
                   mutate_stdout_and_stderr_to_sync_on_write silence_single_worker_warning silence_fork_callback_warning],
      "Control and plugins" => %i[activate_control_app plugin],
      "The file itself" => %i[load inject get single cluster],
      "Hooks" => %i[before_fork before_worker_fork on_worker_fork after_worker_fork after_worker_boot before_worker_boot on_worker_boot
                    before_worker_shutdown on_worker_shutdown after_worker_shutdown before_restart on_restart after_booted on_booted
                    after_stopped on_stopped before_refork on_refork after_refork before_thread_start on_thread_start
                    before_thread_exit on_thread_exit out_of_band]
    }.freeze

    # Differences from Puma, if any.
    DIFFERENCES = {
      activate_control_app: "the token may also be in the field `authorization`; for more commands, see [control.md](control.md)",
      app: "makes a rackup file unnecessary",
      bind_to_activated_sockets: "sockets for every interface are the same in IPv4 and IPv6",
      bind: "`low_latency` is always on; for `ssl://`, see `ssl_bind`",
      custom_logger: "a Logger gets each message with its level, warnings and errors included; any object with `write` or `<<` is accepted",
      debug: "logs different messages",
      directory: "must exist when the file is read",
      environment: "details of errors are shown to clients only in `development`",
      get: "accepts our names too",
      http_content_length_limit: "the default is 1 GiB, not unlimited",
      idle_timeout: "the time without a request, not without a connection; open WebSockets count as use",
      log_formatter: "not for requests",
      log_requests: "the format is `combined`; `access_log_format` has others",
      max_fast_inline: "the default is no limit, not 999",
      max_keep_alive: "the default is no limit, not 999",
      out_of_band: "other threads run the requests that arrive in the meantime",
      plugin: "`tmp_restart` and `systemd` are built in; for others, see [plugins.md](plugins.md)",
      quiet: "in a file for Puma it switches `log_requests` off; in our own file, and on the command line, it also leaves out all messages " \
             "but warnings and errors",
      raise_exception_on_sigterm: "the default is false: TERM ends with status 0, not 143",
      rackup: "the last call counts, not the first",
      restart_command: "a command that would start Puma has no effect and gives a warning",
      silence_single_worker_warning: "there is no such warning",
      set_remote_address: "a field that has no address is ignored; with `proxy_protocol: :v1` a connection without a PROXY header gets a 400",
      shutdown_debug: "each thread is a message, with its request",
      stdout_redirect: "never empties a file that HUP reopens, or when the server restarts itself",
      ssl_bind: "TLS 1.2 and 1.3 only, without OpenSSL's names of ciphers and without keystores",
      state_permission: "the default is 0600, because the file may contain a token",
      supported_http_methods: "the default is any method",
      threads: "at most 500",
      workers: "at most 64; `:auto` needs no gem",
      **Fairlead::Configuration::Migration::NOTED
    }.freeze

    class << self
      # The text with a new table in place of the old one.
      def update(text)
        text.sub(/#{Regexp.escape(BEGINNING)}.*#{Regexp.escape(ENDING)}/m) { BEGINNING + table + ENDING }
      end

      # Rows for each heading: Puma's method, ours, the difference.
      def table
        METHODS.map { |heading, names| "\n### #{heading}\n\n#{HEAD}#{names.map { |name| row(name) }.join}" }.join.concat("\n")
      end

      private

      def row(name)
        "| `#{name}` | #{ours(name)} | #{difference(name)} |\n".gsub(/ {2,}/, " ")
      end

      def ours(name)
        entry = Fairlead::Configuration::Accepted[name]
        return entry.same.include?(true) ? "always on" : "no effect" if entry&.instead

        new = Fairlead::Hooks::ALIASES[name] || Fairlead::Options[name]&.name || name
        new == name ? "the same" : "`#{new}`"
      end

      def difference(name) = DIFFERENCES[name] || Fairlead::Configuration::Accepted[name]&.instead
    end
  end
end
