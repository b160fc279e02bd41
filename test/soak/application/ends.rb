# frozen_string_literal: true

module Fairlead
  module Soak
    # Counts objects that have begun in this process and must end, however their request or connection ends.
    module Ends
      # bodies: bodies with a #close that must be called. requests: they run code after their response. clients: WebSockets
      # and event streams, which must get on_close. deferred: deferred blocks.
      KINDS = %i[bodies requests clients deferred].freeze

      @lock = Mutex.new
      @counts = KINDS.to_h { |kind| [kind, 0] }

      class << self
        def open(kind) = add(kind, 1)
        def close(kind) = add(kind, -1)

        # Objects that have not ended, by kind; negative if there were more ends than beginnings.
        def missing = @lock.synchronize { @counts.dup }

        private

        def add(kind, change) = @lock.synchronize { @counts[kind] += change }
      end
    end
  end
end
