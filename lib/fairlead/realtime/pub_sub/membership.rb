# frozen_string_literal: true

module Fairlead
  module PubSub
    # Tells the processes of a server from processes that the application has forked. The supervisor makes workers known to each
    # other. A forked process does not know workers that start later, so it publishes like a process beside the server.
    module Membership
      class << self
        # This process is one of the server's. +path+: of the publish socket; nil or false if there is none.
        def join(path)
          @pid = Process.pid
          @path = path
        end

        # This process only supervises: the workers are not known here.
        def leave
          @pid = nil
        end

        # The RunningServer for a process that the application has forked, or nil.
        def server
          return if !@path || Process.pid == @pid || Cable::Place.current.delivers?

          @server ||= RunningServer.new(@path)
        end
      end
    end
  end
end
