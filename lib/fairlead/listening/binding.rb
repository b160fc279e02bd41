# frozen_string_literal: true

require "socket"

module Fairlead
  # A configured address. Each scheme has a subclass (binding/tcp.rb, binding/ssl.rb, binding/unix.rb). Only #open touches the system.
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
        raise BindError.new(address, "the scheme is missing; use tcp://…, ssl://… or unix://…") unless rest

        name = SCHEMES.fetch(scheme) { raise BindError.new(address, "unknown scheme; use tcp, ssl or unix") }
        const_get(name).new(address, *split_query(address, rest))
      end

      # The default of the option `bind`.
      def default_address
        address_for_port(DEFAULT_PORT)
      end

      # The address for a port on +host+, or on every interface if it is nil.
      def address_for_port(port, host = nil)
        host ||= any_host
        host = "[#{host}]" if host.include?(":") && !host.start_with?("[")
        "tcp://#{host}:#{port}"
      end

      # The host that means every interface.
      def any_host = ipv6? ? "::" : "0.0.0.0"

      private

      # Whether this machine has an IPv6 address other than ::1.
      def ipv6?
        Socket.ip_address_list.any? { |address| address.ipv6? && !address.ipv6_loopback? }
      end

      def split_query(address, rest)
        location, _, query = rest.partition("?")
        [location, query.empty? ? [] : read(query)]
      rescue ArgumentError
        raise BindError.new(address, "invalid query")
      end

      # Loads the library only if there is a query, which is rare.
      def read(query)
        require "uri"
        URI.decode_www_form(query)
      end
    end

    # The versions of the PROXY protocol; "none" where the listener has none, whatever `remote_address` says.
    PROXY_PROTOCOLS = %w[v1 v2 any none].freeze

    # The address as it was written.
    attr_reader :address

    # What its connections begin with: one of PROXY_PROTOCOLS, or nil if the address does not say it.
    attr_reader :proxy_protocol

    # +pairs+: the parameters of the query, [[name, value], …].
    def initialize(address, location, pairs)
      @address = address
      @parameters = pairs.to_h
      unknown = @parameters.keys - known_parameters
      raise BindError.new(address, "unknown parameter #{unknown.first}") if unknown.any?

      @backlog = number("backlog", 10)
      @proxy_protocol = word("proxy_protocol", PROXY_PROTOCOLS)
      locate(location)
      read_parameters(pairs)
    end

    # Whether an inherited listener can take the place of those that #open makes. What the query says does not count.
    def covers?(listener) = location_of(listener.binding.to_s) == location_of(address) || at?(listener)

    # Opens the listeners and returns them. +backlog+ is used if the address has none.
    def open(backlog:)
      listen(@backlog || backlog)
    rescue SystemCallError, SocketError => e
      raise BindError.new(address, reason_for(e))
    end

    # Takes +listeners+, which are at this address. Returns them.
    def claim(listeners)
      listeners.each do |listener|
        listener.claimed = address
        listener.proxy_protocol = proxy_protocol
      end
    end

    private

    # For the parameters, as pairs, that only a subclass has.
    def read_parameters(*) = nil

    def location_of(address) = address.partition("?").first

    # A parameter as a number in that base (0: as in Ruby, where a leading 0 means octal), or nil.
    def number(name, base)
      text = @parameters[name]
      return unless text

      value = Integer(text, base, exception: false)
      value && !value.negative? ? value : raise(BindError.new(address, "#{name} must be a number, not #{text}"))
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
      when Errno::ENOENT then "there is no such folder"
      else Error.reason(error)
      end
    end
  end
end
