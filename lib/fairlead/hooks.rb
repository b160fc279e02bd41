# frozen_string_literal: true

module Fairlead
  # The blocks of the configuration file that run at points in the life of the processes. Those of one name run in the
  # order they were given; one that raises is logged and does not keep the others, or the server, from going on.
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

    # Those that nothing calls without workers.
    WITH_WORKERS = %i[before_fork before_worker_fork after_worker_fork before_worker_boot before_worker_shutdown].freeze

    def initialize
      @blocks = Hash.new { |blocks, name| blocks[name] = [] }
    end

    def add(name, block)
      @blocks[ALIASES.fetch(name, name)] << block
    end

    # The names that have a block.
    def names = @blocks.keys

    # Runs the blocks of that name; +log+ hears of one that raises.
    def run(name, *arguments, log:)
      return unless @blocks.key?(name)

      @blocks[name].each do |block|
        block.call(*arguments)
      rescue StandardError, ScriptError => e
        log.hook_failed(name, e)
      end
    end

    def freeze
      @blocks.each_value(&:freeze)
      @blocks.freeze
      super
    end
  end
end
