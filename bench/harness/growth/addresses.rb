# frozen_string_literal: true

module Bench
  module Growth
    # Clients at n addresses, one after another: the cost of a request of each, the first time and again, and the memory that the server
    # keeps of them. The servers count by address: Fairlead with `fair_by "ip"`, nginx with `limit_req`.
    class Addresses
      REQUESTS = 1000

      NGINX = {
        "http" => "limit_req_zone $binary_remote_addr zone=clients:32m rate=100000r/s;", "server" => "limit_req zone=clients burst=1000 nodelay;"
      }.freeze

      def figures(target, count)
        NGINX.each { |block, text| target.running.site.write("nginx-#{block}.conf", text) }
        target.running.with_another do |running|
          ask(running, target, Array.new(REQUESTS) { "127.0.0.1" })
          cost = Cost.new(running.group)
          first = cost.once(count) { ask(running, target, Array.new(count) { |index| address(index) }) }
          again = cost.each(REQUESTS) { ask(running, target, Array.new(REQUESTS) { |index| address(index * 7919 % count) }) }
          { "connection from one of n addresses, again, µs" => again, "the first from each, µs" => first,
            "memory, MiB" => running.group.memory_kib / 1024.0 }
        end
      end

      private

      def address(index) = "127.#{1 + (index >> 16)}.#{(index >> 8) & 255}.#{index & 255}"

      # A connection with a request from each address.
      def ask(running, target, addresses)
        addresses.each do |address|
          Socket.tcp("127.0.0.1", running.port, address, connect_timeout: IdleConnections::CONNECTING) do |socket|
            socket.write("GET #{target.path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            raise Error, "no response" unless socket.read.include?(" 200 ")
          end
        end
      end
    end
  end
end
