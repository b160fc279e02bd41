# frozen_string_literal: true

require_relative "../iodine"
require_relative "arguments"

module Fairlead
  module Compat
    # The command `fairlead-iodine`: `fairlead` with the flags, the variables and the defaults of iodine's command, and with its
    # Ruby API. Arguments that are not flags of iodine go to Fairlead.
    module IodineCommand
      class << self
        # Runs the command and returns its exit status.
        def start(arguments, environment: ENV, errors: $stderr)
          given = IodineArguments.new(arguments, environment)
          connect(given.redis)
          given.files.each { |path| Kernel.load(File.expand_path(path)) }
          CLI.start(given.for_fairlead(Iodine), errors: errors)
        rescue Error, ScriptError => e
          EventLog.new(errors: errors).start_failed(e)
          1
        end

        private

        def connect(url)
          Iodine::PubSub.default = Iodine::PubSub::Redis.new(url) if url
        end
      end
    end
  end
end
