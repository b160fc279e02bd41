# frozen_string_literal: true

module Fairlead
  class Binding
    # tcp://HOST:PORT; a HOST of * means every interface.
    class Tcp < Binding
      # Number of attempts with port 0: the port that the system chooses for one loopback address may be in use at another.
      ATTEMPTS = 5

      # Bytes of a response that the kernel buffers beyond the client's window. Without this limit it buffers megabytes for a
      # client that reads nothing. Ruby has no name for the option; the number is Linux's.
      UNSENT_BYTES = 512 * 1024
      TCP_NOTSENT_LOWAT = RUBY_PLATFORM.include?("linux") ? 25 : nil

      attr_reader :host, :port

      # Sets options that accepted sockets inherit.
      def self.tune(socket)
        socket.setsockopt(:TCP, :NODELAY, true)
        socket.setsockopt(:TCP, TCP_NOTSENT_LOWAT, UNSENT_BYTES) if TCP_NOTSENT_LOWAT
      end

      # True if a listener of another owner is at this address. Port 0 is no address, and every interface is the same address in
      # IPv4 and IPv6.
      def at?(listener)
        listener.port == port && !port.zero? && hosts.include?(listener.address[:host])
      end

      # True if +other+ cannot listen beside this one. An unknown host overlaps with nothing.
      def overlaps?(other)
        return false unless other.is_a?(Tcp) && other.port == port && !port.zero?

        plain.product(other.plain).any? { |pair| pair.uniq.one? || pair.any? { |ip| covers_all?(ip, pair) } }
      end

      protected

      # The numbers of the addresses, as the system writes them.
      def numeric
        @numeric ||= addresses.map { |address| Addrinfo.tcp(address, port).ip_address }
      rescue SocketError
        []
      end

      # The same, with IPv4 addresses that are written as IPv6 (::ffff:127.0.0.1) turned into IPv4.
      def plain = numeric.map { |ip| ip[/\A::ffff:(\d+\.[\d.]+)\z/i, 1] || ip }

      private

      # True if +ip+ is every interface, for both of a pair: :: accepts IPv4 too.
      def covers_all?(ip, pair) = ip == "::" || (ip == "0.0.0.0" && pair.all? { |one| one == "::" || !one.include?(":") })

      # Binds sockets, which do not listen, to the hosts with any port.
      def try
        found = addresses.filter_map do |address|
          info = Addrinfo.tcp(address, 0)
          Socket.open(info.pfamily, Socket::SOCK_STREAM) { |socket| socket.bind(info) }
        rescue Errno::EADDRNOTAVAIL, Errno::EAFNOSUPPORT
          raise if addresses.one?
        end
        raise Errno::EADDRNOTAVAIL if found.empty?
      end

      EVERY_INTERFACE = ["0.0.0.0", "::"].freeze
      private_constant :EVERY_INTERFACE

      def hosts
        (numeric & EVERY_INTERFACE).any? ? EVERY_INTERFACE : numeric
      end

      # low_latency is a parameter of Puma; the engine always sends without delay.
      def known_parameters = %w[backlog low_latency proxy_protocol]

      def locate(location)
        match = %r{\A(?<host>\[[^\]]+\]|[^:\[\]/]+):(?<port>\d+)/?\z}.match(location)
        raise BindError.new(address, "invalid address; use #{address[/\A\w+/]}://HOST:PORT") unless match

        # In an address with a scope, such as fe80::1%eth0, the % may be escaped (RFC 6874).
        @host = match[:host] == "*" ? Binding.any_host : match[:host].delete("[]").sub("%25", "%")
        @port = Integer(match[:port], 10)
        raise BindError.new(address, "the port must be at most 65535") if port > 65_535
      end

      def listen(backlog)
        attempts = 0
        begin
          listen_on(addresses, backlog)
        rescue Errno::EADDRINUSE
          retry if port.zero? && (attempts += 1) < ATTEMPTS
          raise
        end
      end

      # Listens on the same port at all addresses, even if the system chooses it.
      def listen_on(addresses, backlog)
        listeners = []
        addresses.each do |address|
          listeners << listener(address, listeners.first&.port || port, backlog)
        rescue Errno::EADDRNOTAVAIL, Errno::EAFNOSUPPORT
          raise if addresses.one?
        end
        raise Errno::EADDRNOTAVAIL if listeners.empty?

        listeners
      rescue SystemCallError
        listeners.each(&:close)
        raise
      end

      def addresses
        return [host] unless host == "localhost"

        loopback = Socket.ip_address_list.select { |address| address.ipv4_loopback? || address.ipv6_loopback? }
        loopback.empty? ? ["127.0.0.1"] : loopback.map(&:ip_address).uniq
      end

      def listener(address, port, backlog)
        info = Addrinfo.tcp(address, port)
        socket = Socket.new(info.pfamily, Socket::SOCK_STREAM)
        prepare(socket, info)
        socket.bind(info)
        socket.listen(backlog)
        Listener.new(socket, Listener.address_of(socket), binding: self.address)
      rescue SystemCallError
        socket&.close
        raise
      end

      # "::" accepts IPv4 too, with any default of the system; an address such as ::ffff:127.0.0.1 accepts nothing else.
      def prepare(socket, info)
        socket.setsockopt(:SOCKET, :REUSEADDR, true)
        Tcp.tune(socket)
        socket.setsockopt(:IPV6, :V6ONLY, info.ip_address == "::" || info.ipv6_v4mapped? ? 0 : 1) if info.ipv6?
      end
    end
  end
end
