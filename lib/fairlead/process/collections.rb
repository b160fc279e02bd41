# frozen_string_literal: true

module Fairlead
  # Garbage collections of this process.
  module Collections
    # Calls the block without a collection, and returns its value. The block must not call code of the application, which may turn
    # collections off for good. Collections stay off if they were off before.
    def self.without
      disabled = GC.disable
      yield
    ensure
      GC.enable unless disabled
    end
  end
end
