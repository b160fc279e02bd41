# frozen_string_literal: true

require "shellwords"
require_relative "puma_cable"

module Bench
  module Servers
    # Puma with Action Cable and its Redis adapter, the usual setup in production before Rails 8.
    class PumaCableRedis < PumaCable
      SOCKET = "redis.sock"
      REDIS = ["redis-server", "--port", "0", "--unixsocket", SOCKET, "--save", ""].freeze

      def name
        "puma-cable-redis"
      end

      def missing
        super || ("gem redis is not installed" unless redis) || ("redis-server is not installed" unless installed?(REDIS.first))
      end

      def version
        "#{super} + redis #{redis.version}"
      end

      def note(_shape)
        "a Redis on a Unix socket, with its memory and CPU time included; four threads run commands"
      end

      def dialect
        CableDialect.new("adapter" => "redis", "path" => SOCKET)
      end

      def processes(shape)
        super + 1
      end

      # Puma is the leader of the group, so that it ends first.
      def command(site, port, shape)
        ["/bin/sh", "-c", "#{REDIS.shelljoin} & exec #{super.shelljoin}"]
      end

      private

      def redis
        Gem::Specification.find_by_name("redis")
      rescue Gem::MissingSpecError
        nil
      end

      def installed?(program)
        ENV.fetch("PATH", "").split(":").any? { |folder| File.executable?(File.join(folder, program)) }
      end
    end
  end
end
