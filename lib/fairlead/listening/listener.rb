# frozen_string_literal: true

module Fairlead
  # An open socket that accepts connections, made from a binding or adopted from a descriptor.
  class Listener
    class << self
      # The listener for a descriptor that already listens, from an earlier program of this process or from systemd. Programs
      # that this process starts get neither this listener nor any other. +binding+: the address it was opened for, as it was
      # written. +kept+, +shared+: as for #kept? and #shared?. Raises BindError if it does not listen.
      def adopt(descriptor, binding = nil, kept: false, shared: false)
        socket = Socket.for_fd(descriptor)
        socket.close_on_exec = true
        refuse(descriptor, binding, "it does not listen") unless listening?(socket)
        Binding::Tcp.tune(socket) if socket.local_address.ip?
        address = address_of(socket)
        file = address[:path] unless kept || shared || address[:path].to_s.start_with?("@")
        new(socket, address, file: file, binding: binding, kept: kept, shared: shared)
      rescue SystemCallError => e
        refuse(descriptor, binding, Error.reason(e))
      end

      # The address of a socket for the engine.
      def address_of(socket)
        local = socket.local_address
        return { scheme: "http", host: local.ip_address, port: local.ip_port } if local.ip?

        { scheme: "http", path: SystemText.decode(local.unix_path.b.sub(/\A\0/n, "@")) }
      end

      private

      def listening?(socket)
        socket.getsockopt(:SOCKET, :ACCEPTCONN).bool && socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_STREAM
      end

      def refuse(descriptor, binding, reason)
        raise BindError.new(binding || "descriptor #{descriptor}", binding ? "descriptor #{descriptor}: #{reason}" : reason)
      end
    end

    # The address for the engine: { scheme:, host:, port: } or { scheme:, path: }.
    attr_reader :address

    # The address it was opened for, as it was written; nil if it is not known.
    attr_reader :binding

    # The path of the file of a Unix socket that this process has made; nil for others.
    attr_reader :file

    # The address that it serves; nil if no binding has claimed it.
    attr_accessor :claimed

    # The PROXY protocol of its connections: one of Binding::PROXY_PROTOCOLS, or nil if its address does not say.
    attr_accessor :proxy_protocol

    # The `ssl://` address that it serves; nil without TLS.
    attr_accessor :ssl_address

    # The offer to its peers: a Tls::Offer; nil without TLS.
    attr_reader :tls

    # +file+: the path of a Unix socket. #remove deletes it. +kept+: as for #kept?.
    # +shared+: as for #shared?.
    def initialize(socket, address, file: nil, binding: nil, kept: false, shared: false)
      @socket = socket
      @address = address.freeze
      @binding = binding
      @kept = kept
      @owner = Process.pid unless shared
      return unless file

      @file = file
      @identity = identity
    end

    # Adds TLS to the listener.
    def secure(offer)
      @tls = offer
      @address = address.merge(scheme: "https").freeze
    end

    # The address by which another process of the server knows it; nil if there is none.
    def known_as = ssl_address || claimed || binding

    # The port, or nil for a Unix socket.
    def port = address[:port]

    def fileno = @socket.fileno

    # For IO.select.
    def to_io = @socket

    # True if the socket outlives this server, because systemd has it too and gives it to the next one.
    def kept? = @kept

    # True if another process of the server has opened it, and removes it.
    def shared? = @owner.nil?

    # Notes another address as the address that it was opened for.
    def rename(binding)
      @binding = binding
    end

    # "http://127.0.0.1:9292", "https://[::1]:9292", "unix:/run/app.sock", "unix:@name"
    def to_s
      return "unix:#{address[:path]}" if address[:path]

      host = address[:host]
      "#{address[:scheme]}://#{host.include?(":") ? "[#{host}]" : host}:#{port}"
    end

    # The inode of the socket, by which other processes recognise it; nil if #remove would only close it.
    def ending = (@socket.stat.ino unless @socket.closed? || outlives?)

    # Closes the socket in this process. Other processes can still accept.
    def close
      @socket.close unless @socket.closed?
    end

    # Stops listening in all processes, even if some still hold the socket open. A kept listener is only closed, and so are a
    # copy in a forked process and a listener of another process.
    def remove
      return close if outlives?

      unlink
      @socket.shutdown unless @socket.closed?
      close
    rescue Errno::ENOTCONN # some systems cannot shut down a listening socket
      close
    end

    private

    def outlives? = kept? || @owner != Process.pid

    # Deletes the file of the socket, if this process has made it and it has not been replaced.
    def unlink
      File.unlink(@file) if @identity && identity == @identity
    end

    def identity
      stat = File.lstat(@file)
      [stat.dev, stat.ino]
    rescue Errno::ENOENT
      nil
    end
  end
end
