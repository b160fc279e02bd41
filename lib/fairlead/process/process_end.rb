# frozen_string_literal: true

module Fairlead
  # Tells whether this process ends, so that Ruby kills every thread. A thread that is started in the place of a killed one then would
  # live for ever, and the process with it: Ruby kills those that it finds, once.
  #
  # The main thread alone does not tell: it counts as dead while it waits for the others, but alive while it runs a trap or a finalizer
  # meanwhile.
  module ProcessEnd
    # Has the end noticed from now on, in this process and in those that it forks.
    def self.watch = Native.watch_end!

    # True once the end has begun: Ruby runs the blocks of at_exit, or what comes after these.
    def self.begun? = Native.end_begun? || !Thread.main.alive?
  end
end
