# frozen_string_literal: true

require_relative "server_process"

module Fairlead
  module Test
    # A server started by another command: `rackup -s fairlead`, `rails server -u fairlead`, or a program that embeds it.
    class LaunchedBy < ServerProcess
      # +program+: an absolute path, or a path in the server's folder. Other arguments as for ServerProcess, without the
      # binding.
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
