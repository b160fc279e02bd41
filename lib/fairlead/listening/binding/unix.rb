# frozen_string_literal: true

module Fairlead
  class Binding
    # unix:///PATH, unix://PATH (relative to the current folder) and, on Linux, unix://@NAME for a socket without a file.
    class Unix < Binding
      # Seconds that a start waits for another start in the same folder. Every user who may read the folder could hold its lock.
      PATIENCE = 2.0

      # nil for an abstract socket.
      attr_reader :path

      # True if the system has abstract sockets.
      def self.abstract? = RUBY_PLATFORM.include?("linux") && !Native.portable?

      def port = nil

      # True if a listener of another owner is at this address.
      def at?(listener) = listener.address[:path] == name

      # True if +other+ cannot listen beside this one.
      def overlaps?(other) = other.is_a?(Unix) && other.name == name

      protected

      # The absolute path, or the name of an abstract socket with its "@".
      def name = path || @name

      private

      def known_parameters = %w[backlog umask mode proxy_protocol]

      def locate(location)
        name = SystemText.decode(location.b.gsub(/%\h\h/n) { |escape| [escape.delete("%")].pack("H2") })
        raise BindError.new(address, "the path is missing or invalid") if name.empty? || name == "@" || name.b.include?("\0")

        raise BindError.new(address, "a line break cannot stand in a path") if name.include?("\n")

        refuse_abstract if name.start_with?("@") && !Unix.abstract?
        @name = name
        @path = SystemText.absolute(name) unless abstract?
        @umask = number("umask", 0, MODES)
        @mode = number("mode", 8, MODES)
      rescue ArgumentError
        raise BindError.new(address, "the path #{SystemText::HOMELESS}")
      end

      def abstract? = @name.start_with?("@")

      def refuse_abstract
        raise BindError.new(address, "only Linux has sockets without a file; name a path, such as unix:///run/app.sock")
      end

      def try
        info
        refuse_other_file if path
      end

      # Raises BindError if the path is longer than a socket address can hold.
      def info
        Addrinfo.unix(abstract? ? @name.sub("@", "\0") : path)
      rescue ArgumentError => e
        raise BindError.new(address, e.message)
      end

      def refuse_other_file
        raise BindError.new(address, "the path exists and is not a socket") unless File.socket?(path) || !(File.exist?(path) || File.symlink?(path))
      end

      def listen(backlog) = abstract? ? listen_now(backlog) : alone { listen_now(backlog) }

      # Calls the block while no other start does so in this folder. Between bind(2) and listen(2) a socket refuses connections, as the file
      # of a killed server does: another start would delete it.
      def alone
        folder = open_folder
        deadline = Clock.now + PATIENCE
        sleep(0.01) until folder.nil? || folder.flock(File::LOCK_EX | File::LOCK_NB) || Clock.now > deadline
        yield
      ensure
        folder&.close
      end

      # nil if this user may not read the folder: a socket can still be made there.
      def open_folder
        File.open(File.dirname(path))
      rescue SystemCallError
        nil
      end

      def listen_now(backlog)
        remove_stale_file unless abstract?
        socket = Socket.new(:UNIX, Socket::SOCK_STREAM)
        bind(socket)
        socket.listen(backlog)
        [Listener.new(socket, Listener.address_of(socket), file: path, binding: address)]
      rescue SystemCallError, BindError
        socket&.close
        raise
      end

      def bind(socket)
        previous = File.umask(@umask) if @umask
        socket.bind(info)
        File.chmod(@mode, path) if @mode && path
      ensure
        File.umask(previous) if previous
      end

      # A server that was killed leaves its file behind. If a connection is accepted, the file is in use.
      def remove_stale_file
        refuse_other_file
        return unless File.socket?(path)

        Socket.unix(path).close
        raise BindError.new(address, "another process listens on it", in_use: true)
      rescue Errno::ECONNREFUSED
        File.unlink(path)
      rescue Errno::ENOENT
        nil
      end
    end
  end
end
