# frozen_string_literal: true

module Fairlead
  # Blocks that run at points in the life of the processes: first the blocks of the configuration file, then the blocks of
  # Fairlead.on, which belong to the process and not to a configuration. Blocks for one event run in the order in which they
  # were given. If one raises, the exception is logged, and the others still run.
  class Hooks
    # name => process and time of the block, and its argument
    NAMES = {
      before_fork: "in the spawner, once, before the first worker is forked",
      before_worker_fork: "in the spawner, before each fork, with the worker's index",
      after_worker_fork: "in the spawner, after each fork, with the worker's index",
      before_worker_boot: "in each worker, before it loads the application (or serves a preloaded one), with its index",
      before_worker_shutdown: "in each worker, after it has stopped serving, with its index",
      after_worker_shutdown: "in the spawner, after a worker has ended, with an object that has its `index`, `pid` and `process_status`",
      before_thread_start: "in each thread that is to run requests, at its start",
      before_thread_exit: "in each thread that has run requests, at its end",
      out_of_band: "in a thread that has just run a request, when no other one runs or waits in its process",
      before_restart: "in the spawner or the only process, before a hot restart, with the launcher of the plugins for Puma, if there are any",
      before_refork: "in a worker that has stopped serving and is to become the spawner (`refork`)",
      after_refork: "in the spawner that was a worker, once all workers come from it",
      after_booted: "in the spawner or the only process, once the server is ready",
      after_stopped: "in the spawner or the only process, after everything has ended"
    }.freeze

    # Puma's names for the hooks.
    ALIASES = {
      on_worker_fork: :before_worker_fork, after_worker_boot: :after_worker_fork, on_worker_boot: :before_worker_boot,
      on_worker_shutdown: :before_worker_shutdown, on_thread_start: :before_thread_start, on_thread_exit: :before_thread_exit,
      on_restart: :before_restart, on_refork: :before_refork, on_booted: :after_booted, on_stopped: :after_stopped
    }.freeze

    # Further events for Fairlead.on, for applications but not for configuration files.
    EVENTS = {
      boot: "in each process that serves, just before it serves",
      shutdown: "in each process that serves, when it begins to drain",
      stopped: "in each process that serves, after its last connection is gone",
      worker_lost: "in the spawner, when a worker has ended unexpectedly, with its index",
      supervisor_lost: "in each worker, when the supervisor is gone, with its index"
    }.freeze

    # Other names for the events of Fairlead.on.
    EVENT_ALIASES = { fork: :before_worker_boot }.freeze

    # The hooks that do not run without workers.
    WITH_WORKERS = %i[
      before_fork before_worker_fork after_worker_fork before_worker_boot before_worker_shutdown after_worker_shutdown before_refork after_refork
    ].freeze

    class << self
      # The blocks of Fairlead.on.
      attr_reader :of_process

      # Adds +block+ for +event+ in this process and its forks. Returns the block.
      def on(event, block)
        name = event.to_s.to_sym
        name = EVENT_ALIASES.fetch(name) { ALIASES.fetch(name, name) }
        unless NAMES.key?(name) || EVENTS.key?(name)
          raise ArgumentError, "unknown event #{event}; use one of #{[*EVENTS.keys, *EVENT_ALIASES.keys, *NAMES.keys].join(", ")}"
        end
        raise ArgumentError, "#{event} needs a block" unless block

        of_process.add(name, block)
        block
      end
    end

    # +followed_by+: Hooks that run after these.
    def initialize(followed_by: self.class.of_process)
      @blocks = {}
      @others = followed_by
    end

    def add(name, block)
      name = ALIASES.fetch(name, name)
      @blocks[name] = [*@blocks[name], block].freeze # a new Array, because the blocks of the old one may be running
    end

    # Adds the blocks of other Hooks.
    def concat(others)
      others.names.each { |name| others.blocks(name).each { |block| add(name, block) } }
    end

    # The blocks of that name.
    def blocks(name) = @blocks.fetch(name, [])

    # The names for which there are blocks.
    def names = @blocks.keys

    # True if there are blocks of that name, here or in the Hooks that run after these.
    def any?(name) = @blocks.key?(name) || @others&.any?(name) || false

    # Runs the blocks of that name; exceptions go to +log+.
    def run(name, *arguments, log:)
      @blocks.fetch(name, []).each do |block|
        # A lambda that takes no argument is fine for every event.
        block.respond_to?(:arity) && block.arity.zero? ? block.call : block.call(*arguments)
      rescue StandardError, ScriptError => e
        log.hook_failed(name, e)
      rescue SystemExit => e
        log.hook_exited(name, e.status)
        raise
      end
      @others&.run(name, *arguments, log: log)
    end

    def freeze
      @blocks.freeze
      super
    end

    @of_process = new(followed_by: nil)
  end
end
