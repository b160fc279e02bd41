# frozen_string_literal: true

module Fairlead
  # A Sole in the process of the program that has handed over the application. The supervisor is a native thread of the same
  # process and gets the signals; the two communicate over a link, as if they were two processes. After a restart another
  # process serves, and only the supervisor goes on here.
  class Resident < Sole
    # As Sole#run. An exception, for example from another thread's Thread#raise, ends the whole server.
    def run
      super
    rescue Exception => e # rubocop:disable Lint/RescueException -- it goes on
      give_up(e) if own_process?
      raise
    ensure
      leave_server if own_process?
    end

    private

    def prepare_process
      @supervisor = Process.pid
    end

    def take_signals = nil

    # False in a process that the application has forked from this thread.
    def own_process? = Process.pid == @supervisor

    def give_up(error)
      @place ? ask(:halt) : @link.send(:failed, Error.sum_up(error))
      @engine&.stop
    end

    # The supervisor waits for it. A forked process of the application may still have the descriptor.
    def leave_server
      @link.to_io.shutdown
    rescue SystemCallError, IOError
      nil
    end

    # The supervisor has stopped waiting.
    def supervisor_gone
      @link.close
      halt
    end
  end
end
