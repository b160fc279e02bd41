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

        @clients = {} # channel => { Socket => true }; a Socket knows its identifiers
        @lock = Mutex.new

        class << self
          def add(socket, channel, identifier)
            Presence::Exchange.current # it tells the clients of this process who joins
            @lock.synchronize do
              @subscription ||= subscribe
              (@clients[channel] ||= {}.compare_by_identity)[socket] = true
              (socket.heard[channel] ||= {})[identifier] = true
            end
          end

          def remove(socket, channel, identifier)
            @lock.synchronize do
              identifiers = socket.heard[channel] or return
              identifiers.delete(identifier)
              next unless identifiers.empty?

              socket.heard.delete(channel)
              leave(channel, socket)
            end
          end

          # Forgets a client that is gone.
          def forget(socket)
            @lock.synchronize do
              socket.heard.each_key { |channel| leave(channel, socket) }
              socket.heard.clear
            end
          end

          # Sends a message of the client +sid+ to all other clients of a channel, in all processes.
          def whisper(channel, message, sid)
            PubSub.registry.publish(CHANNEL, JSON.generate([channel, JSON.generate(message), sid]), nil)
          end

          # Sends a message, which is JSON, to the clients of this process, except +sid+. +type+: of a message that is no whisper.
          def deliver(channel, message, type: nil, except: nil)
            head = type ? %({"type":"#{type}","identifier":) : '{"identifier":'
            frames = {}
            receivers(channel).each do |socket, identifiers|
              next if socket.sid == except

              identifiers.each do |identifier|
                frames.clear if frames.size >= FRAMES
                frames[identifier] ||= %(#{head}#{JSON.generate(identifier)},"message":#{message}})
                break unless socket.transmit(frames[identifier]) # it is closed
              end
            end
          end

          private

          def subscribe
            callable = ->(_, text) { receive(JSON.parse(text)) }
            PubSub.registry.subscribe(PubSub::Subscription.new(CHANNEL, callable: callable, owner: :transients))
          end

          def receive(whisper)
            channel, message, sid = whisper
            deliver(channel, message, except: sid)
          end

          # Each Socket with its identifiers.
          def receivers(channel)
            @lock.synchronize { (@clients[channel] || {}).each_key.map { |socket| [socket, socket.heard[channel].keys] } }
          end

          def leave(channel, socket)
            own = @clients[channel] or return
            own.delete(socket)
            @clients.delete(channel) if own.empty?
          end
        end
      end
    end
  end
end
