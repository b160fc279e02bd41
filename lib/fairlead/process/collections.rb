# frozen_string_literal: true

module Fairlead
  # Garbage collections of this process.
  module Collections
    # An application that is loaded later may replace it by a method without parameters.
    START = GC.method(:start)
    private_constant :START

    # Collects garbage. +full_mark+: among all objects, not only new ones.
    def self.start(full_mark: true) = START.call(full_mark: full_mark)

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
