# frozen_string_literal: true

require "json"

module Fairlead
  module Cable
    module Extended
      # Messages that are not part of a stream's history: whispers and changes of presence. The clients of this process by channel.
      module Transients
        # The channel of the server for messages of clients.
        CHANNEL = "fairlead/cable/transient"

        # Most frames of one message in memory, for clients with the same identifier.
        FRAMES = 16

        @clients = {} # channel => { Socket => [identifier, …] }
        @lock = Mutex.new

        class << self
          def add(socket, channel, identifier)
            Presence::Exchange.current # it tells the clients of this process who joins
            @lock.synchronize do
              @subscription ||= Fairlead.subscribe(CHANNEL) { |_, text| receive(JSON.parse(text)) }
              own = (@clients[channel] ||= {}.compare_by_identity)
              own[socket] = [*own[socket], identifier] unless own[socket]&.include?(identifier)
            end
          end

          def remove(socket, channel, identifier)
            @lock.synchronize do
              own = @clients[channel] or return
              identifiers = (own[socket] || []) - [identifier]
              identifiers.empty? ? own.delete(socket) : own[socket] = identifiers
              @clients.delete(channel) if own.empty?
            end
          end

          # Forgets a client that is gone.
          def forget(socket)
            @lock.synchronize { @clients.delete_if { |_, own| own.delete(socket) && own.empty? } }
          end

          # Sends a message of the client +sid+ to all other clients of a channel, in all processes.
          def whisper(channel, message, sid)
            Fairlead.publish(CHANNEL, JSON.generate([channel, message, sid]))
          end

          # Sends a message to the clients of this process, except +sid+.
          def deliver(channel, message, type: nil, except: nil)
            frames = {}
            (@lock.synchronize { @clients[channel]&.to_a } || []).each do |socket, identifiers|
              next if socket.sid == except || !socket.alive?

              identifiers.each do |identifier|
                frames.clear if frames.size >= FRAMES
                socket.transmit(frames[identifier] ||= frame(identifier, message, type))
              end
            end
          end

          private

          def receive(whisper)
            channel, message, sid = whisper
            deliver(channel, message, except: sid)
          end

          def frame(identifier, message, type)
            JSON.generate({ type: type, identifier: identifier, message: message }.compact)
          end
        end
      end
    end
  end
end
