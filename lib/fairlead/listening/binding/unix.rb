# frozen_string_literal: true

module Fairlead
  class Binding
    # unix:///PATH, unix://PATH (relative to the current folder) and, on Linux, unix://@NAME for a socket without a file.
    class Unix < Binding
      # nil for an abstract socket.
      attr_reader :path

      def port = nil

      # Whether a listener of another owner is at this address.
      def at?(listener) = listener.address[:path] == (path || @name)

      private

      def known_parameters = %w[backlog umask mode proxy_protocol]

      def locate(location)
        name = location.gsub(/%\h\h/) { |escape| [escape.delete("%")].pack("H2") }
        raise BindError.new(address, "the path is missing or invalid") if name.empty? || name == "@" || name.include?("\0")

        @name = name
        @path = File.expand_path(name) unless abstract?
        @umask = number("umask", 0)
        @mode = number("mode", 8)
      end

      def abstract? = @name.start_with?("@")

      def listen(backlog)
        remove_stale_file unless abstract?
        socket = Socket.new(:UNIX, Socket::SOCK_STREAM)
        bind(socket)
        socket.listen(backlog)
        [Listener.new(socket, Listener.address_of(socket), file: path, binding: address)]
      rescue ArgumentError => e # the path is longer than a socket address can hold
        socket&.close
        raise BindError.new(address, e.message)
      rescue SystemCallError
        socket&.close
        raise
      end

      def bind(socket)
        info = Addrinfo.unix(abstract? ? @name.sub("@", "\0") : path)
        previous = File.umask(@umask) if @umask
        socket.bind(info)
        File.chmod(@mode, path) if @mode && path
      ensure
        File.umask(previous) if previous
      end

      # A server that was killed leaves its file behind. If a connection is accepted, the file is in use.
      def remove_stale_file
        return unless File.exist?(path) || File.symlink?(path)
        raise BindError.new(address, "the path exists and is not a socket") unless File.socket?(path)

        Socket.unix(path).close
        raise BindError.new(address, "another process listens on it")
      rescue Errno::ECONNREFUSED
        File.unlink(path)
      rescue Errno::ENOENT
        nil
      end
    end
  end
end
