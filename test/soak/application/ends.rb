# frozen_string_literal: true

module Fairlead
  module Soak
    # Counts what has begun in this process and has to end, by whatever way its request or its connection goes.
    module Ends
      # bodies: those with a #close, which has to be called. requests: after their answer something of theirs runs. clients:
      # WebSockets and event streams, which hear on_close. deferred: blocks for later.
      KINDS = %i[bodies requests clients deferred].freeze

      @lock = Mutex.new
      @counts = KINDS.to_h { |kind| [kind, 0] }

      class << self
        def open(kind) = add(kind, 1)
        def close(kind) = add(kind, -1)

        # What has not ended, by kind; a negative number has ended more often than begun.
        def missing = @lock.synchronize { @counts.dup }

        private

        def add(kind, change) = @lock.synchronize { @counts[kind] += change }
      end
    end
  end
end
