# frozen_string_literal: true

require "socket"

module Bench
  module Growth
    # The commands of Fairlead's control server that show the state of a server with n idle connections.
    class Control
      COMMANDS = %w[stats status metrics backtraces].freeze
      TIMES = 20
      ARGUMENTS = ["--control-url", "auto", "-S", "state"].freeze

      def figures(target, count)
        state = File.read(target.running.site.path("state"))
        cost = Cost.new(target.running.group)
        clients = Clients.open(count) { Clients.kept(target) }
        COMMANDS.to_h { |command| ["ctl #{command}, µs", cost.each(TIMES) { TIMES.times { ask(state, command) } }] }
      ensure
        clients&.each(&:close)
        cost&.wait_until_quiet
      end

      private

      def ask(state, command)
        place, token = %w[control_url control_auth_token].map { |key| state[/^#{key}: +"?([^"\n]+)/, 1] }
        Socket.unix(place.delete_prefix("unix://").sub(/\A@/, "\0")) do |socket|
          socket.write("GET /#{command} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer #{token}\r\n\r\n")
          head = socket.read.lines.first.to_s
          raise Error, "#{command}: #{head}" unless head.include?(" 200 ")
        end
      end
    end
  end
end
