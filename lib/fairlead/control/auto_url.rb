# frozen_string_literal: true

module Fairlead
  module Control
    # The address for `auto`: a Unix socket with a name that cannot be guessed, in a folder for temporary files. Only users who
    # may read the state file can connect.
    module AutoUrl
      NAME = /\Afairlead-control-\h{16}\.sock\z/

      class << self
        # A new address in +folder+. Removes files that killed servers have left there.
        def in(folder)
          sweep(folder)
          require "securerandom"
          private_to_owner("unix://#{folder}/fairlead-control-#{SecureRandom.hex(8)}.sock")
        end

        # True if +url+ has come from #in.
        def ours?(url) = url.to_s.start_with?("unix:") && NAME.match?(File.basename(url.partition("?").first))

        def private_to_owner(url) = "#{url}?mode=0600"

        private

        def sweep(folder)
          Dir.children(folder).grep(NAME).each { |name| remove_if_dead(File.join(folder, name)) }
        rescue SystemCallError
          nil
        end

        # A socket without a listening process refuses connections. This does not wait for a busy server.
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
