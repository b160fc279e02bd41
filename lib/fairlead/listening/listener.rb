# frozen_string_literal: true

module Fairlead
  # An open socket that accepts connections, made from a binding.
  class Listener
    # +address+: what the engine has to know, { scheme:, host:, port: } or { scheme:, path: }.
    attr_reader :address

    # +file+: the path of a Unix socket, which this process removes at the end.
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

    # Lets go of the socket in this process; others that hold it go on.
    def close
      @socket.close unless @socket.closed?
    end

    # Stops listening for good, also for those that hold the socket without accepting any more, as an engine that has ended.
    def remove
      unlink
      @socket.shutdown unless @socket.closed?
      close
    rescue Errno::ENOTCONN # not every system shuts down a socket that only listens
      close
    end

    private

    # The file of the socket, if this process made it and nobody has put another one in its place.
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
