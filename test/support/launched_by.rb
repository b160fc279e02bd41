# frozen_string_literal: true

require_relative "server_process"

module Fairlead
  module Test
    # A server that another command starts: `rackup -s fairlead`, `rails server -u fairlead`, or a program that embeds it.
    class LaunchedBy < ServerProcess
      # +program+: a path, absolute or in the folder of the server. Otherwise as ServerProcess, but for the binding.
      def initialize(program, config_ru, *arguments, **options)
        @program = program
        super(config_ru, *arguments, bind: nil, **options)
      end

      private

      def command
        super.map { |part| part == File.join(ROOT, "exe/fairlead") ? @program : part }
      end
    end
  end
end
