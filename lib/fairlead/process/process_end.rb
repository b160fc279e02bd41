# frozen_string_literal: true

module Fairlead
  # Tells when this process ends, so that Ruby kills every thread. A thread that replaces a killed one at that time would live
  # for ever, and so would the process: Ruby kills the threads that it finds, once.
  #
  # The main thread alone does not tell: it counts as dead while it waits for the others, but as alive while it runs a trap or a
  # finalizer meanwhile.
  module ProcessEnd
    # Begins to watch for the end, in this process and its forks.
    def self.watch = Native.watch_end!

    # True once the end has begun: Ruby runs the blocks of at_exit, or a later step.
    def self.begun? = Native.end_begun? || !Thread.main.alive?
  end
end
