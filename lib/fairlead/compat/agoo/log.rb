# frozen_string_literal: true

module Agoo
  # The log of programs that use agoo: lines on standard error. The messages of the server itself are Fairlead's.
  module Log
    LEVELS = %i[error warn info debug].freeze

    @enabled = { error: true, warn: true, info: false, debug: false, request: false }

    class << self
      # Switches kinds of messages on and off: `configure(states: { INFO: true, request: true })`. Only :info, :error, :warn,
      # :debug and :request have an effect; :request is Fairlead's access log. Files and colours are not supported.
      def configure(options)
        unless options[:dir].to_s.empty?
          Fairlead::Compat.missing("Agoo::Log.configure(dir:)", "send standard error to a file; --access-log logs requests to one")
        end

        options.fetch(:states, {}).each { |name, on| set_state(name, on) }
        nil
      end

      def state(name) = @enabled.fetch(name.to_s.downcase.to_sym, false)

      def set_state(name, on)
        @enabled[name.to_s.downcase.to_sym] = on ? true : false
      end

      LEVELS.each do |level|
        define_method(level) { |text| write(level, text) if state(level) }
        define_method(:"#{level}?") { state(level) }
      end

      # Does nothing, since lines are not buffered.
      def flush(_seconds = nil) = true
      def shutdown = nil

      private

      def write(level, text)
        STDERR.write("#{level.to_s.upcase}: #{text}\n")
        nil
      end
    end
  end
end
