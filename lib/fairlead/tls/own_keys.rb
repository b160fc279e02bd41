# frozen_string_literal: true

module Fairlead
  module Tls
    # The keys of session tickets of a server without workers, so that the program that replaces it at a hot restart goes on
    # with them. Workers have theirs with everything else that they share.
    module OwnKeys
      # The environment variable that has their descriptor.
      VARIABLE = "FAIRLEAD_TICKET_KEYS"

      class << self
        # Those of an earlier program of this process, or new ones.
        def take(environment = ENV)
          inherited = environment.delete(VARIABLE)
          return Native::TicketKeys.new unless inherited

          io = IO.for_fd(Integer(inherited, 10))
          Native::TicketKeys.adopt(io.fileno)
        rescue SystemCallError # of another version
          Native::TicketKeys.new
        ensure
          io&.close
        end

        # The variables and the descriptors that hand them over.
        def hand_over(keys)
          return [{}] unless keys

          [{ VARIABLE => keys.fileno.to_s }, IO.for_fd(keys.fileno, autoclose: false)]
        end
      end
    end
  end
end
