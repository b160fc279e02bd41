# frozen_string_literal: true

require "socket"

module Fairlead
  module ForkSafety
    # Connections that this process has opened to other servers, found by their descriptors: libraries in other languages have no Ruby object
    # for theirs. Each method returns a Hash of identities, which no other socket has at the same time, and addresses of peers.
    module Connections
      # The standard streams, which may be connections to a service that keeps logs. They are meant to be shared.
      STANDARD = [0, 1, 2].freeze

      # The variables of Active Record, of different versions, for a connection of a client library.
      RAW = %i[@raw_connection @connection].freeze

      class << self
        # Returns nothing for a process that cannot list its descriptors.
        def open(&left_out)
          shared = STANDARD.filter_map { |descriptor| identity(descriptor) }
          descriptors = Dir.children("/dev/fd").map { |number| Integer(number, 10) }
          descriptors.filter_map { |number| peer(number, &left_out) }.to_h.except(*shared)
        rescue Errno::ENOENT
          {}
        end

        # The same in a process that serves. +addresses+: of its listeners, as in Listener#address: connections of clients have the same
        # address at this end. Without connections of Active Record, which are closed before the process is copied; if it is unknown which
        # ones those are, or if this library has connections to brokers, nothing is returned.
        def beside(addresses)
          ports = addresses.filter_map { |address| address[:port] }
          paths = addresses.filter_map { |address| address[:path] }
          pooled = of_active_record
          return {} if pooled.nil? || Background.current.services.any?

          open do |socket|
            local = socket.local_address
            pooled.include?(socket.fileno) || (local.ip? ? ports.include?(local.ip_port) : paths.include?(local.unix_path))
          end
        end

        private

        # Identity and peer of a connection; nil for anything else, and for a socket for which the block returns true.
        def peer(descriptor)
          socket = BasicSocket.for_fd(descriptor)
          socket.autoclose = false
          return unless socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_STREAM

          name = name_of(socket.remote_address)
          [identity(descriptor), name] if name && !(block_given? && yield(socket))
        rescue SystemCallError, SocketError, ArgumentError
          nil
        end

        # Returns nil for one end of a pair, and for a client without a path.
        def name_of(address)
          return address.inspect_sockaddr unless address.unix?

          address.unix_path unless address.unix_path.empty?
        end

        def identity(descriptor)
          io = IO.for_fd(descriptor, autoclose: false)
          [:socket, io.stat.ino] if io.stat.socket?
        rescue SystemCallError, ArgumentError
          nil
        end

        # Descriptors of its connections; nil if they are unknown.
        def of_active_record
          return [] unless defined?(::ActiveRecord::Base)

          handler = ::ActiveRecord::Base.connection_handler
          pools = ::ActiveRecord.gem_version >= Gem::Version.new("7.1") ? handler.connection_pool_list(:all) : handler.all_connection_pools
          connections = pools.flat_map(&:connections).reject { |connection| connection.adapter_name.match?(/sqlite/i) }
          raw = connections.filter_map { |connection| RAW.filter_map { |name| connection.instance_variable_get(name) }.first }
          raw.map(&:socket) if raw.all? { |connection| connection.respond_to?(:socket) }
        rescue StandardError
          nil
        end
      end
    end
  end
end
