# frozen_string_literal: true

require "socket"

module Fairlead
  # A configured address. Each scheme has a subclass (binding/tcp.rb, binding/ssl.rb, binding/unix.rb). Only #open uses the
  # system.
  class Binding
    autoload :Tcp, "fairlead/listening/binding/tcp"
    autoload :Ssl, "fairlead/listening/binding/ssl"
    autoload :Unix, "fairlead/listening/binding/unix"

    DEFAULT_PORT = 9292
    SCHEMES = { "tcp" => :Tcp, "ssl" => :Ssl, "unix" => :Unix }.freeze

    class << self
      # The Binding for +address+. Raises BindError if the address is invalid.
      def parse(address)
        scheme, rest = address.split("://", 2)
        raise BindError.new(address, "the scheme is missing; use #{with_scheme(address)}") unless rest
        raise BindError.new(address.inspect, "a line break cannot stand in an address") if address.include?("\n")

        name = SCHEMES.fetch(scheme) { raise BindError.new(address, "unknown scheme; use tcp, ssl or unix") }
        const_get(name).new(address, *split_query(rest))
      end

      # The default of the option `bind`.
      def default_address
        address_for_port(DEFAULT_PORT)
      end

      # The address for a port on +host+, or on every interface if +host+ is nil.
      def address_for_port(port, host = nil)
        host ||= any_host
        host = "[#{host}]" if host.include?(":") && !host.start_with?("[")
        "tcp://#{host}:#{port}"
      end

      # The host that means every interface.
      def any_host = ipv6? ? "::" : "0.0.0.0"

      private

      # A suggestion for an address without a scheme.
      def with_scheme(address)
        case address
        when %r{\A\.{0,2}/} then "unix://#{address}"
        when /\A:\d+\z/ then "tcp://*#{address}"
        when /\A(?:\[[^\]]+\]|[\w.-]+):\d+\z/ then "tcp://#{address}"
        when /\A[\w.-]+\z/ then "tcp://#{address}:PORT"
        else "tcp://…, ssl://… or unix://…"
        end
      end

      # True if this machine has an IPv6 address other than ::1.
      def ipv6?
        Socket.ip_address_list.any? { |address| address.ipv6? && !address.ipv6_loopback? }
      end

      def split_query(rest)
        location, _, query = rest.partition("?")
        [location, query.empty? ? [] : SystemText.query(query)]
      end
    end

    # Permitted numbers of waiting connections, and permitted modes of a file.
    BACKLOGS = (1..Backlog::MOST)
    MODES = (0..0o777)

    # The versions of the PROXY protocol; "none" for a listener without it, even if `remote_address` says otherwise.
    PROXY_PROTOCOLS = %w[v1 v2 any none].freeze

    # The address as it was written.
    attr_reader :address

    # The PROXY protocol of its connections: one of PROXY_PROTOCOLS, or nil if the address does not say.
    attr_reader :proxy_protocol

    # +pairs+: the parameters of the query, [[name, value], …].
    def initialize(address, location, pairs)
      @address = address
      @parameters = pairs.to_h
      unknown = @parameters.keys - known_parameters
      raise BindError.new(address, "unknown parameter #{unknown.first}") if unknown.any?

      @backlog = number("backlog", 10, BACKLOGS)
      @proxy_protocol = word("proxy_protocol", PROXY_PROTOCOLS)
      locate(location)
      read_parameters(pairs)
    end

    # True if an inherited listener can replace the listeners that #open makes. The query is ignored.
    def covers?(listener) = location_of(listener.binding.to_s) == location_of(address) || at?(listener)

    # The most connections that wait to be accepted; nil if the address does not say.
    attr_reader :backlog

    # Opens the listeners and returns them. +backlog+ is used if the address has none.
    def open(backlog:)
      listen(Backlog.of(@backlog || backlog))
    rescue SystemCallError, SocketError => e
      raise BindError.new(address, reason_for(e), in_use: e.is_a?(Errno::EADDRINUSE))
    end

    # Raises BindError if nothing can listen there, as far as known without listening.
    def check
      try
    rescue SystemCallError, SocketError => e
      raise BindError.new(address, reason_for(e))
    end

    # The address without its query.
    def location = location_of(address)

    # Takes +listeners+, which are at this address. Returns them.
    def claim(listeners)
      listeners.each do |listener|
        listener.claimed = address
        listener.proxy_protocol = proxy_protocol
      end
    end

    private

    # Reads parameters, as pairs, that only a subclass has.
    def read_parameters(*) = nil

    def location_of(address) = address.partition("?").first

    # A parameter as a number in +range+, or nil. +base+ 0: as in Ruby, where a leading 0 means octal.
    def number(name, base, range)
      text = @parameters[name]
      return unless text

      value = Integer(text, base, exception: false)
      return value if value && range.cover?(value)

      first, last = range.minmax.map { |one| base == 10 ? one.to_s : format("0%o", one) }
      raise BindError.new(address, "#{name} must be a number from #{first} to #{last}, not #{text}")
    end

    # A parameter that is one of several words, or nil.
    def word(name, words)
      text = @parameters[name]
      return text if text.nil? || words.include?(text)

      raise BindError.new(address, "#{name} must be #{words[0...-1].join(", ")} or #{words.last}, not #{text}")
    end

    def reason_for(error)
      case error
      when Errno::EADDRINUSE then "the address is in use"
      when Errno::EADDRNOTAVAIL then "no interface of this machine has that address"
      when Errno::EACCES then "permission denied"
      when SocketError then "the host is not known (#{error.message.delete_prefix("getaddrinfo: ")})"
      when SystemCallError then Error.reason(error)
      else error.message
      end
    end
  end
end
