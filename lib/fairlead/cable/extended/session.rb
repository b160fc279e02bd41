# frozen_string_literal: true

require "json"
require "securerandom"

module Fairlead
  module Cable
    module Extended
      # The state of a connection that another connection restores: who it was, and its subscriptions. It is in the history, which
      # all workers share, as changes since the last complete state. Like messages, it is forgotten after +history_time+, and the
      # oldest give way. A session that cannot be kept is forgotten at once: nobody restores an older state of it.
      class Session
        CHANNEL = "fairlead/cable/session/"

        # An id: nobody can guess it.
        ID = /\A[\w-]{22}\z/

        # Changes between two complete states.
        CHANGES = 40

        # A larger state is not kept, in bytes of the identifiers.
        LARGEST = 32 * 1024

        class << self
          # The Allowance of all sessions of this process.
          attr_accessor :allowance

          # The connection identifier, the subscriptions and, if it is known, the last position of a session; nil if there is no
          # such session.
          def find(id)
            return unless id.is_a?(String) && id.valid_encoding? && ID.match?(id)

            past = Extended.past(CHANNEL + id, 0.0, most: CHANGES + 2)
            (past || []).reduce(nil) { |state, (_, _, change)| apply(state, JSON.parse(change)) }
          end

          private

          def apply(state, change)
            kind, value, who, position = change
            case kind
            when "all" then [who, value, position]
            when "add" then state && [state[0], state[1] | [value]]
            when "remove" then state && [state[0], state[1] - [value]]
            when "forget" then nil
            end
          end
        end

        attr_reader :id

        # +address+: of the client, which counts if the connection has no identifier. +id+: of a session that another process has begun.
        def initialize(address, id = SecureRandom.urlsafe_base64(16))
          @id = id
          @owner = address
          @changes = CHANGES
          @is_kept = false
        end

        # Keeps a change. The block returns the connection identifier and all subscriptions.
        def change(kind, identifier)
          return save(*yield) if (@changes += 1) > CHANGES

          @is_kept && (keep(kind, identifier) || forget)
        end

        # +position+: where the streams end, if they do.
        def save(who, identifiers, position = nil)
          @changes = 0
          @owner = who unless who.to_s.empty?
          is_small = identifiers.sum(&:bytesize) <= LARGEST
          @is_kept = (is_small && keep("all", identifiers, who, position)) || forget
        end

        private

        # Returns false if the client has kept too much.
        def keep(*change)
          text = JSON.generate(change)
          self.class.allowance.take(@owner, text.bytesize) && publish(text)
        end

        # Returns false.
        def forget
          publish('["forget"]') if @is_kept
          @is_kept = false
        end

        def publish(text) = PubSub.registry.publish(CHANNEL + @id, text, PubSub::HISTORY)
      end
    end
  end
end
