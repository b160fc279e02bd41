# frozen_string_literal: true

require "json"

module Fairlead
  module Control
    class Tool
      # Waits until the command has taken effect: until a restart is over, or the server has ended.
      class Patience
        PAUSE = 0.1

        RESTARTS = %w[restart phased-restart refork].freeze
        ENDS = %w[stop halt].freeze

        # Notes the present state, before the command is sent.
        def initialize(arguments, target)
          @arguments = arguments
          @target = target
          raise Arguments::Invalid, "--wait is for #{[*RESTARTS, *ENDS].join(", ")}" unless [*RESTARTS, *ENDS].include?(arguments.command)
          raise Error, "--wait needs the control server (control_url), which the server does not have" if restart? && !target.control?

          @before = status if restart?
        end

        # Raises Error if the command fails, or takes too long.
        def wait
          deadline = Clock.now + @arguments.wait
          until restart? ? restarted? : !@target.running?
            raise Error, "#{@arguments.command}: not done after #{@arguments.wait.to_i} s" if Clock.now > deadline

            sleep(PAUSE)
          end
        end

        private

        def restart? = RESTARTS.include?(@arguments.command)

        # After a restart, a server without workers no longer knows of the restart; but its start time is another one.
        def restarted?
          status = self.status or return false
          restart = status["restart"]
          return status["started_at"] != @before["started_at"] && status["state"] == "ready" if restart.nil? || restart == @before["restart"]

          raise Error, "the restart failed: #{restart["error"]}" if restart["state"] == "failed"

          restart["state"] == "done"
        end

        # nil while no server responds; a hot restart may change address and token.
        def status
          JSON.parse(Target.new(@arguments).client.get("status"))
        rescue Client::Failure, Target::Missing, JSON::ParserError
          nil
        end
      end
    end
  end
end
