# frozen_string_literal: true

require "socket"

module Bench
  # Idle keep-alive connections: the memory that one costs the server. Each has had a response before, unless the server
  # cannot keep many that quickly (Server#idle_after).
  class IdleConnections
    NUMBER = 1_000
    # Seconds until a server has freed the memory that it needed to serve them.
    SETTLING = 1
    # Seconds until the queue of a listener counts as full.
    CONNECTING = 5

    # KiB of memory (PSS of all processes) for each of `number`, or nil if it is unknown.
    def self.kib(running, after: :response, number: NUMBER, settling: SETTLING)
      return unless ProcessGroup.readable?

      allow_descriptors(number)
      sleep settling
      before = running.group.memory_kib
      connections = Array.new(number) { new(running.port, tls: running.tls).tap { |one| one.ask if after == :response } }
      sleep settling
      with_all = running.group.memory_kib
      raise Error, "idle connections were closed" unless connections.all?(&:open?)

      (with_all - before).fdiv(number) if before && with_all
    ensure
      connections&.each(&:close)
    end

    # Connections from each local address: fewer than the ports that the kernel gives out (`ip_local_port_range`).
    OF_AN_ADDRESS = 20_000

    # Lets this process, and the servers that it starts from now on, open so many sockets, as far as it may.
    def self.allow_descriptors(number)
      soft, hard = Process.getrlimit(:NOFILE)
      wanted = [soft, number + 200].max
      Process.setrlimit(:NOFILE, wanted, [wanted, hard].max)
    rescue Errno::EPERM
      Process.setrlimit(:NOFILE, hard, hard)
    end

    # The local address of the next connection.
    def self.next_source
      @connected = @connected.to_i + 1
      "127.0.0.#{1 + (@connected / OF_AN_ADDRESS % 250)}"
    end

    def initialize(port, tls:)
      @socket = connect(port)
      @stream = tls ? Tls.over(@socket) : @socket
    end

    # Sends a request and waits for the response.
    def ask(path = "/")
      @stream.write("GET #{path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
      read_response
    end

    # Sends a body in chunks, each of them by itself, and waits for the response.
    def upload(path, chunks)
      @socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      @stream.write("POST #{path} HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n")
      [*chunks, ""].each { |chunk| @stream.write("#{chunk.bytesize.to_s(16)}\r\n#{chunk}\r\n") }
      read_response
    end

    # Sends a form of several parts, which "b" separates, and waits for the response.
    def send_form(path, body)
      @stream.write("POST #{path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: multipart/form-data; boundary=b\r\n" \
                    "content-length: #{body.bytesize}\r\n\r\n#{body}")
      read_response
    end

    # True if the server has not closed it. The unread data are TLS tickets.
    def open?
      @socket.recv_nonblock(1, Socket::MSG_PEEK, exception: false).then { |found| found == :wait_readable || !found.to_s.empty? }
    rescue SystemCallError
      false
    end

    def close
      @socket.close
    end

    def closed? = @socket.closed?

    private

    def connect(port) = Socket.tcp("127.0.0.1", port, IdleConnections.next_source, connect_timeout: CONNECTING)

    # Reads up to Content-Length, or to the last chunk.
    def read_response
      head = +""
      head << (@stream.gets || raise(Error, "the server closed a connection")) until head.end_with?("\r\n\r\n")
      length = head[/^content-length: *(\d+)/i, 1]
      return @stream.read(length.to_i) if length

      nil until @stream.gets == "0\r\n"
      @stream.gets
    end
  end
end
