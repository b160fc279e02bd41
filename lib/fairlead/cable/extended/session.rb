# frozen_string_literal: true

require "json"
require "securerandom"

module Fairlead
  module Cable
    module Extended
      # The state of a connection that another connection restores: who it was, and its subscriptions. It is in the history, which
      # all workers share, as changes since the last complete state. Like messages, it is forgotten after +history_time+, and the
      # oldest give way.
      class Session
        CHANNEL = "fairlead/cable/session/"

        # An id: nobody can guess it.
        ID = /\A[\w-]{22}\z/

        # Changes between two complete states; fewer than the history keeps.
        CHANGES = 40

        # A larger state is not kept.
        LARGEST = 8 * 1024

        class << self
          # The connection identifier, the subscriptions and, if it is known, the last position of a session; nil if there is no
          # such session.
          def find(id)
            return unless id.is_a?(String) && id.valid_encoding? && ID.match?(id)

            past = Extended.past(CHANNEL + id, 0.0)
            (past || []).reduce(nil) { |state, (_, _, change)| apply(state, JSON.parse(change)) }
          end

          private

          def apply(state, change)
            kind, value, who, position = change
            case kind
            when "all" then [who, value, position]
            when "add" then state && [state[0], state[1] | [value]]
            when "remove" then state && [state[0], state[1] - [value]]
            end
          end
        end

        attr_reader :id

        def initialize
          @id = SecureRandom.urlsafe_base64(16)
          @changes = CHANGES
        end

        # Keeps a change. The block returns the connection identifier and all subscriptions.
        def change(kind, identifier)
          return save(*yield) if (@changes += 1) > CHANGES

          keep(kind, identifier)
        end

        # +position+: where the streams end, if they do.
        def save(who, identifiers, position = nil)
          @changes = 0
          keep("all", identifiers, who, position)
        end

        private

        def keep(*change)
          text = JSON.generate(change)
          Fairlead.publish(CHANNEL + @id, text, PubSub::HISTORY) if text.bytesize <= LARGEST
        end
      end
    end
  end
end
