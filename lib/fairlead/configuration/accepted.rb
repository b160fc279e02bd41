# frozen_string_literal: true

module Fairlead
  class Configuration
    # The table of Puma's methods and flags that have no effect in Fairlead, with Fairlead's own behaviour. A configuration file
    # that calls one still loads, and gives one warning.
    module Accepted
      # name     the method
      # instead  Fairlead's behaviour; completes the sentence "<name> has no effect: …". nil: no difference, so no warning
      # same     arguments that ask for Fairlead's behaviour; no warning either
      # flags    the flags, as OptionParser takes them
      Entry = Struct.new(:name, :instead, :same, :flags, keyword_init: true) do
        # The warning for a call with these arguments, or nil.
        def warning(arguments)
          return if instead.nil? || same.include?(arguments.empty? ? true : arguments.first)

          "#{name} has no effect: #{instead}"
        end
      end

      @entries = {}

      class << self
        include Enumerable

        def each(&block) = @entries.each_value(&block)

        def [](name) = @entries[name]

        # The entries that are flags.
        def flags = reject { |entry| entry.flags.empty? }

        private

        def accept(name, instead, same: [], flags: [])
          @entries[name] = Entry.new(name: name, instead: instead, same: same, flags: flags).freeze
        end
      end

      accept :allow_underscore_headers, "header fields whose name has an underscore never reach the application", same: [false]
      accept :daemonize, "Fairlead stays in the foreground; let systemd or another supervisor of services run it",
             same: [false, nil], flags: ["-d", "--daemon"]
      accept :drain_on_shutdown, "requests that have arrived before the end are always served", same: [true]
      accept :extra_runtime_dependencies, "every process of Fairlead has all gems of the bundle",
             same: [nil, []], flags: ["--extra-runtime-dependencies GEMS"]
      accept :io_selector_backend, "Fairlead's reactor uses epoll", same: %i[auto epoll]
      accept :max_io_threads, "every request needs one of the threads that max_threads allows (puma_env offers puma.mark_as_io_bound)",
             same: [0]
      accept :mutate_stdout_and_stderr_to_sync_on_write, "standard output and standard error are always written at once", same: [true]
      accept :nakayoshi_fork, "the spawner always collects garbage between preloading and forking", same: [true]
      accept :persistent_connections, "connections are kept alive anyway, for up to keep_alive_timeout", flags: ["--persistent-connections"]
      accept :queue_requests, "a request is always read before a thread runs it", same: [true]
      accept :silence_single_worker_warning, nil
      accept :tcp_mode, "Fairlead speaks HTTP only", same: [false, nil], flags: ["--tcp-mode"]
      accept :tcp_mode!, "Fairlead speaks HTTP only"
      accept :worker_check_interval, "each worker shows a sign of life every second, or four times in a worker_timeout", same: [5]
      accept :worker_culling_strategy, "TTOU ends the worker with the highest number", same: %i[youngest]
      accept :wait_for_less_busy_worker, "a request that finds its worker busy moves to a worker with a free thread (waiting_room)",
             same: [false, nil, 0, 0.0]
    end
  end
end
