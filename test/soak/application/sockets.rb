# frozen_string_literal: true

module Fairlead
  module Soak
    # Applications that take over the socket, completely or behind the head, and echo lines.
    module Sockets
      class << self
        def all = { "take" => method(:take), "take_part" => method(:take_part) }

        def take(asked)
          io = asked.env["rack.hijack"].call
          io.write("#{format("%x", asked.id)} #{Process.pid}\n")
          Thread.new { echo(io, asked.id) }
          [-1, {}, []]
        end

        def take_part(asked)
          [200, asked.fields("rack.hijack" => ->(stream) { Thread.new { echo(stream, asked.id) } }), []]
        end

        private

        def echo(io, id)
          name = format("%x", id)
          rest = +""
          loop do
            rest << io.readpartial(4096)
            rest.slice!(/\A.*\n/m)&.each_line { |line| io.write("#{name} #{line}") }
          end
        rescue IOError, SystemCallError
          nil # the client has left
        ensure
          io.close unless io.closed?
        end
      end
    end
  end
end
