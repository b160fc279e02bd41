# frozen_string_literal: true

module Fairlead
  module Tls
    # The input of an Offer, in a file in memory: one process of a server has read the files, and all others get their bytes.
    module HandedOver
      class << self
        # An IO. +settings+: as Settings#read returns them.
        def write(settings) = IO.for_fd(Native.memory_file("fairlead certificates", Marshal.dump(settings)))

        # The settings; nil if they come from another version. Closes +io+.
        def read(io)
          text = io.pread(io.stat.size, 0) # processes share one position in the file
          Marshal.load(text) # rubocop:disable Security/MarshalLoad -- it comes from a process of this server
        rescue TypeError, ArgumentError, EOFError
          nil
        ensure
          io.close
        end
      end
    end
  end
end
