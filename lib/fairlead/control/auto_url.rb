# frozen_string_literal: true

module Fairlead
  module Control
    # The address that `auto` stands for: a Unix socket with a name that nobody can guess, in a folder for temporary files. Whoever may
    # not read the state file may not connect either.
    module AutoUrl
      NAME = /\Afairlead-control-\h{16}\.sock\z/

      class << self
        # A new address in +folder+. Servers that were killed have left their files there; those are removed.
        def in(folder)
          sweep(folder)
          require "securerandom"
          private_to_owner("unix://#{folder}/fairlead-control-#{SecureRandom.hex(8)}.sock")
        end

        # Whether +url+ has come from #in.
        def ours?(url) = url.to_s.start_with?("unix:") && NAME.match?(File.basename(url.partition("?").first))

        def private_to_owner(url) = "#{url}?mode=0600"

        private

        def sweep(folder)
          Dir.children(folder).grep(NAME).each { |name| remove_if_dead(File.join(folder, name)) }
        rescue SystemCallError
          nil
        end

        # A socket on which nobody listens refuses connections. This does not wait for a server that is busy.
        def remove_if_dead(path)
          return unless File.socket?(path) && File.owned?(path)

          socket = Socket.new(:UNIX, :STREAM)
          socket.connect_nonblock(Addrinfo.unix(path), exception: false)
        rescue Errno::ECONNREFUSED
          File.unlink(path)
        rescue SystemCallError
          nil
        ensure
          socket&.close
        end
      end
    end
  end
end
