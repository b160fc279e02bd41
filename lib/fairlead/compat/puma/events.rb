# frozen_string_literal: true

module Puma
  # The events for which plugins register. A block that raises is logged, and the others still run.
  class Events
    NAMES = %i[after_booted before_restart after_stopped].freeze
    OLD_NAMES = { on_booted: :after_booted, on_restart: :before_restart, on_stopped: :after_stopped }.freeze

    # +log+: an EventLog.
    def initialize(log)
      @log = log
      @blocks = Hash.new { |blocks, event| blocks[event] = [] }
    end

    # Adds a block, or an object, for an event; `:state` gets each state of the server.
    def register(event, object = nil, &block)
      @blocks[OLD_NAMES.fetch(event, event)] << (object || block)
    end

    NAMES.each { |name| define_method(name) { |&block| register(name, &block) } }
    OLD_NAMES.each { |old, name| define_method(old) { |&block| register(name, &block) } }

    def fire(event, *arguments)
      @blocks[OLD_NAMES.fetch(event, event)].each do |block|
        block.call(*arguments)
      rescue StandardError, ScriptError => e
        @log.plugin_failed(event, e)
      end
    end

    def state(state) = fire(:state, state)
  end
end
