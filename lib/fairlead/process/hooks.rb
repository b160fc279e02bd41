# frozen_string_literal: true

module Fairlead
  # The blocks that run at points in the life of the processes: those of the configuration file, and then those of
  # Fairlead.on, which belong to the process whatever configuration it serves. Those of one name run in the order they were
  # given; one that raises is logged and does not keep the others, or the server, from going on.
  class Hooks
    # name => where it runs, and with what
    NAMES = {
      before_fork: "in the supervisor, once, before the first worker is forked",
      before_worker_fork: "in the supervisor, before each fork, with the worker's index",
      after_worker_fork: "in the supervisor, after each fork, with the worker's index",
      before_worker_boot: "in each worker, before it loads the application (or serves a preloaded one), with its index",
      before_worker_shutdown: "in each worker, after it has stopped serving, with its index",
      before_thread_start: "in each thread that is to run requests, at its start",
      before_thread_exit: "in each thread that has run requests, at its end",
      after_booted: "in the supervisor or the only process, once the server is ready",
      after_stopped: "in the supervisor or the only process, after everything has ended"
    }.freeze

    # Other names for them, as Puma's files have them.
    ALIASES = {
      on_worker_fork: :before_worker_fork, after_worker_boot: :after_worker_fork, on_worker_boot: :before_worker_boot,
      on_worker_shutdown: :before_worker_shutdown, on_thread_start: :before_thread_start, on_thread_exit: :before_thread_exit,
      on_booted: :after_booted, on_stopped: :after_stopped
    }.freeze

    # What Fairlead.on knows besides; these are of use to an application, which a configuration file is not.
    EVENTS = {
      boot: "in each process that serves, just before it serves",
      shutdown: "in each process that serves, when it begins to drain",
      stopped: "in each process that serves, after its last connection is gone",
      worker_lost: "in the supervisor, when a worker has ended unexpectedly, with its index",
      supervisor_lost: "in each worker, when the supervisor is gone, with its index"
    }.freeze

    # Another name for it there.
    EVENT_ALIASES = { fork: :before_worker_boot }.freeze

    # Those that nothing calls without workers.
    WITH_WORKERS = %i[before_fork before_worker_fork after_worker_fork before_worker_boot before_worker_shutdown].freeze

    class << self
      # Those of Fairlead.on.
      attr_reader :of_process

      # Adds +block+ to those of +event+ in this process, and in those forked from it; returns it.
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
      @blocks[name] = [*@blocks[name], block].freeze # a new list: the old one may be running
    end

    # The names that have a block.
    def names = @blocks.keys

    # Runs the blocks of that name; exceptions go to +log+.
    def run(name, *arguments, log:)
      @blocks.fetch(name, []).each do |block|
        block.call(*arguments)
      rescue StandardError, ScriptError => e
        log.hook_failed(name, e)
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
