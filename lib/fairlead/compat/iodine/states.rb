# frozen_string_literal: true

# Blocks that run at points in the life of the processes, and questions about this process. iodine's root process is the
# supervisor or, without workers, the sole process.
module Iodine
  # state => the event of Fairlead.on. The other states are in #events.
  STATES = {
    before_fork: :before_worker_fork,
    enter_master: :after_worker_fork,
    on_start: :boot,
    on_child_crush: :worker_lost,
    on_parent_crush: :supervisor_lost,
    start_shutdown: :shutdown
  }.freeze

  # Methods that files for Puma or older versions of iodine call at the top level => their states.
  HELPERS = {
    before_fork: :before_fork, on_worker_fork: :before_fork, after_fork: :after_fork, on_worker_boot: :after_fork,
    after_fork_in_worker: :enter_child, after_fork_in_master: :enter_master
  }.freeze

  @forks = false

  class << self
    # Runs the block in that state:
    #
    #   :pre_start        once, in the root process, before it forks or serves
    #   :before_fork      in the root process, before each fork
    #   :after_fork       in the root process and in the worker, after each fork
    #   :enter_master     the first half of :after_fork, :enter_child the second
    #   :on_start         in each process that serves, before it does
    #   :on_child_crush   in the root process, when a worker has ended unexpectedly
    #   :on_parent_crush  in each worker, when the root process is gone
    #   :start_shutdown   in each process that serves, when it begins to end
    #   :on_finish        in each process, at its end
    #
    # Blocks for the root process never run if each worker loads the application itself (`--no-preload`).
    def on_state(state, &block)
      raise ArgumentError, "a block is needed" unless block
      raise TypeError, "Iodine.on_state does not know #{state.inspect}" unless state.is_a?(Symbol) && states.include?(state)

      events(state, block).each { |event, run| Fairlead.on(event) { run.call } }
      block
    end

    # True in the root process, and before the start.
    def master? = launcher.nil? || launcher.pid == Process.pid

    # True if this process serves, or will serve.
    def worker? = launcher.nil? || !launcher.configuration.supervised? || !master?

    # True if the server has started.
    def running? = Fairlead.stats[:engines].any? || (@forks && master?)

    HELPERS.except(:on_worker_fork, :on_worker_boot).each do |name, state|
      define_method(name) { |&block| on_state(state, &block) }
    end

    def on_shutdown(&block) = on_state(:on_finish, &block)

    private

    def states = [*STATES.keys, :pre_start, :after_fork, :enter_child, :on_finish]

    # event => block
    def events(state, block)
      case state
      when :pre_start then pre_start(block)
      when :after_fork then { after_worker_fork: block, after_fork_here => block }
      when :enter_child then { after_fork_here => block }
      when :on_finish then { stopped: block, after_stopped: -> { block.call unless worker? } }
      else { STATES.fetch(state) => block }
      end
    end

    # Runs the block before the first fork, or in the sole process; never again in the workers.
    def pre_start(block)
      once = lambda do
        current = block
        block = nil
        current&.call
      end
      { before_fork: once, boot: once }
    end

    # The event after the fork. A worker that loads the application itself is forked already.
    def after_fork_here = master? ? :before_worker_boot : :boot
  end

  Fairlead.on(:before_fork) { @forks = true }
end

# Like iodine, defines these methods for all objects, unless they exist.
Iodine::HELPERS.each do |name, state|
  next if Object.method_defined?(name) || Object.private_method_defined?(name)

  Object.define_method(name) { |*, &block| Iodine.on_state(state, &block) }
  Object.send(:private, name)
end
