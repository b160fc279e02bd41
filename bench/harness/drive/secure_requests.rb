# frozen_string_literal: true

require_relative "requests"

module Bench
  module Drive
    # Requests over kept TLS connections. A server may be measured without TLS, for comparison. With `idle`, the memory
    # of an idle connection is measured, too.
    class SecureRequests < Requests
      def initialize(answer_bytes:, requests_each: nil, idle: false)
        super(answer_bytes: answer_bytes, requests_each: requests_each)
        @idle = idle
      end

      def complete(target, _seconds, found)
        found.socket_kib = IdleConnections.kib(target.running, after: target.running.server.idle_after) if @idle
      end

      private

      def load(target, seconds, each)
        requests = each && each * target.connections
        how = { connections: target.connections, seconds: seconds, requests: requests }
        return target.load_tool.measure(target.url, **how) unless target.tls

        target.load_tool.measure(target.url, **how, tls: target.tls).tap do |found|
          problem = target.tls.problem(found.tls) and raise(Error, problem)
        end
      end
    end
  end
end
