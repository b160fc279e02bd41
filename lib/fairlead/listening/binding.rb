# frozen_string_literal: true

require "socket"

module Fairlead
  # A configured address. Each scheme has a subclass (binding/tcp.rb, binding/unix.rb). Only #open touches the system.
  class Binding
    autoload :Tcp, "fairlead/listening/binding/tcp"
    autoload :Unix, "fairlead/listening/binding/unix"

    DEFAULT_PORT = 9292
    SCHEMES = { "tcp" => :Tcp, "unix" => :Unix }.freeze
    NO_TLS = "TLS is not supported yet; put a proxy with TLS in front, and listen on tcp:// or unix:// here"

    class << self
      # The Binding for +address+. Raises BindError if the address is invalid.
      def parse(address)
        scheme, rest = address.split("://", 2)
        raise BindError.new(address, "the scheme is missing; use tcp://… or unix://…") unless rest
        raise BindError.new(address, NO_TLS) if scheme == "ssl"

        name = SCHEMES.fetch(scheme) { raise BindError.new(address, "unknown scheme; use #{SCHEMES.keys.join(" or ")}") }
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
        [location, query.empty? ? {} : read(query)]
      rescue ArgumentError
        raise BindError.new(address, "invalid query")
      end

      # Loads the library only if there is a query, which is rare.
      def read(query)
        require "uri"
        URI.decode_www_form(query).to_h
      end
    end

    # The address as it was written.
    attr_reader :address

    def initialize(address, location, parameters)
      @address = address
      @parameters = parameters
      unknown = parameters.keys - known_parameters
      raise BindError.new(address, "unknown parameter #{unknown.first}") if unknown.any?

      @backlog = number("backlog", 10)
      locate(location)
    end

    # Whether an inherited listener can take the place of those that #open makes. What the query says does not count.
    def covers?(listener) = location_of(listener.binding.to_s) == location_of(address) || at?(listener)

    # Opens the listeners and returns them. +backlog+ is used if the address has none.
    def open(backlog:)
      listen(@backlog || backlog)
    rescue SystemCallError, SocketError => e
      raise BindError.new(address, reason_for(e))
    end

    private

    def location_of(address) = address.partition("?").first

    # A parameter as a number in that base (0: as in Ruby, where a leading 0 means octal), or nil.
    def number(name, base)
      text = @parameters[name]
      return unless text

      value = Integer(text, base, exception: false)
      value && !value.negative? ? value : raise(BindError.new(address, "#{name} must be a number, not #{text}"))
    end

    def reason_for(error)
      case error
      when Errno::EADDRINUSE then "the address is in use"
      when Errno::EADDRNOTAVAIL then "no interface of this machine has that address"
      when Errno::EACCES then "permission denied"
      else error.message
      end
    end
  end
end
