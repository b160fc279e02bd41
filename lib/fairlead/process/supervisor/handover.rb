# frozen_string_literal: true

module Fairlead
  class Supervisor
    # What a supervisor leaves to the program that replaces it in the same process (a hot restart): its workers and spawners, which
    # remain its children, and what they share. The listeners go by FAIRLEAD_LISTENERS; everything else goes through a Link whose
    # far end the new program inherits.
    class Handover
      # The environment variable that has the descriptor of the link.
      VARIABLE = "FAIRLEAD_HANDOVER"

      class << self
        # Returns the end of a link on which everything about +supervisor+ has been written. Raises Error if it does not fit.
        def write(supervisor)
          ours, theirs = Link.pair
          shared = supervisor.shared
          put(ours, :shared, Native::Shared::LAYOUT, ios: shared.descriptors)
          SLOTS.times { |slot| write_mailbox(ours, shared, slot) }
          write_generation(ours, supervisor.generations.current)
          supervisor.workforce.children.each { |child| write_child(ours, child) }
          theirs
        rescue Error
          theirs&.close
          raise
        ensure
          ours&.close
        end

        # Reads what the process has inherited; nil if there is nothing.
        def take(environment = ENV)
          descriptor = environment.delete(VARIABLE) or return
          link = Link.adopt(Integer(descriptor, 10))
          new(link.messages)
        ensure
          link&.close
        end

        private

        # Nothing may be missing: the new program cannot ask.
        def put(link, kind, *fields, ios:)
          link.send(kind, *fields, ios: ios) || raise(Error, "the #{kind} could not be handed over")
        end

        def write_mailbox(link, shared, slot)
          mailbox = shared.mailbox(slot)
          put(link, :mailbox, slot, ios: mailbox) if mailbox
        end

        def write_generation(link, generation)
          put(link, :generation, generation.number, generation.pid, ios: [generation.link])
        end

        def write_child(link, child)
          return if !child.booted? || child.ending? || child.link.closed?

          put(link, :worker, child.index, child.slot, child.generation, child.pid, child.started_at, child.began_at.to_r, ios: [child.link])
        end
      end

      # What the workers share; nil if this version of Fairlead shares something else.
      attr_reader :shared

      def initialize(messages)
        @messages = messages.group_by(&:kind)
        layout = @messages.fetch(:shared).first
        @shared = adopt_shared(layout.ios) if layout.fields.first == Native::Shared::LAYOUT
      end

      # Gives +supervisor+ the workers and their spawner.
      def resume(supervisor)
        generation = @messages.fetch(:generation).first
        current = Generation.new(generation.number, generation.number(1), Link.new(generation.ios.first), ready: @shared)
        supervisor.generations.current = supervisor.generations.add(current)
        @messages.fetch(:worker, []).each { |message| supervisor.workforce.adopt(worker(message)) }
      end

      private

      def adopt_shared(ios)
        shared = Native::Shared.adopt(SLOTS, ios.map(&:fileno))
        @messages.fetch(:mailbox, []).each { |message| shared.adopt_mailbox(message.number, message.ios.map(&:fileno)) }
        shared
      end

      def worker(message)
        index, slot, generation, pid = message.fields.first(4).map { |field| Integer(field, 10) }
        Child.new(index: index, slot: slot, generation: generation, pid: pid, link: Link.new(message.ios.first), booted: true,
                  now: Float(message.fields[4]), began_at: Time.at(message.fields[5].to_r))
      end
    end
  end
end
