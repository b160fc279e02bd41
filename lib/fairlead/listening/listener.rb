# frozen_string_literal: true

module Fairlead
  # An open socket that accepts connections, made from a binding.
  class Listener
    # The address for the engine: { scheme:, host:, port: } or { scheme:, path: }.
    attr_reader :address

    # +file+: the path of a Unix socket. #remove deletes it.
    def initialize(socket, address, file: nil)
      @socket = socket
      @address = address.freeze
      return unless file

      @file = file
      @identity = identity
      @owner = Process.pid
    end

    # The port, or nil for a Unix socket.
    def port = address[:port]

    def fileno = @socket.fileno

    # "http://127.0.0.1:9292", "http://[::1]:9292", "unix:/run/app.sock", "unix:@name"
    def to_s
      return "unix:#{address[:path]}" if address[:path]

      host = address[:host]
      "#{address[:scheme]}://#{host.include?(":") ? "[#{host}]" : host}:#{port}"
    end

    # Closes the socket in this process. Other processes can still accept.
    def close
      @socket.close unless @socket.closed?
    end

    # Stops listening in all processes, even if some still hold the socket open.
    def remove
      unlink
      @socket.shutdown unless @socket.closed?
      close
    rescue Errno::ENOTCONN # some systems cannot shut down a listening socket
      close
    end

    private

    # Deletes the file of the socket, if this process has made it and it has not been replaced.
    def unlink
      File.unlink(@file) if @file && @owner == Process.pid && identity == @identity
    rescue Errno::ENOENT
      nil
    end

    def identity
      stat = File.lstat(@file)
      [stat.dev, stat.ino]
    end
  end
end
