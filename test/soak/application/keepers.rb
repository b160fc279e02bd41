# frozen_string_literal: true

module Fairlead
  module Soak
    # Applications that keep what was lent to them for a request, and use it when that is long over: for them it must fail,
    # and nobody else may notice.
    module Keepers
      # [id, what was kept], at most so many.
      KEPT = Queue.new
      MOST = 50

      # Gives its block to others, or takes it from them.
      class Body < Bodies::Pieces
        def initialize(asked)
          @asked = asked
          super(Bodies.cut(asked.bytes))
        end

        # Kept when it is over: a block that another thread uses before is a body with two hands, see .two.
        def each(&block)
          super
          Keepers.keep(@asked.id, block)
        end
      end

      # Keeps what it is given when its response has been sent.
      class Leaving < Bodies::Pieces
        def initialize(asked, kept)
          @asked = asked
          @kept = kept
          super([asked.bytes])
        end

        def close
          super
          Keepers.keep(@asked.id, @kept)
        end
      end

      # Header fields that yield, as Rack 2 allows them.
      class Fields < Hash
        def self.keeping(asked)
          new.merge!(asked.fields).tap { |fields| fields.define_singleton_method(:each) { |&block| super(&block) && Keepers.keep(asked.id, block) } }
        end
      end

      class << self
        def all
          { "keep" => method(:keep_block), "keep_fields" => method(:keep_fields), "keep_hints" => method(:keep_hints),
            "keep_hijack" => method(:keep_hijack), "use" => method(:use), "abandon" => method(:abandon), "two" => method(:two),
            "change" => method(:change) }
        end

        def keep(id, block)
          KEPT.pop if KEPT.size >= MOST
          KEPT << [id, block]
        end

        def keep_block(asked) = [200, asked.fields, Body.new(asked)]
        def keep_fields(asked) = [200, Fields.keeping(asked), [asked.bytes]]

        def keep_hints(asked) = leave(asked, ->(bytes) { asked.env["rack.early_hints"]&.call("link" => bytes) })
        def keep_hijack(asked) = leave(asked, ->(bytes) { asked.env["rack.hijack"].call.write(bytes) })

        # Uses what others have left while it yields its own.
        def use(asked)
          body = Bodies::Pieces.new(Bodies.cut(asked.bytes)) { misuse }
          [200, asked.fields, body]
        end

        # Leaves #each while another thread is in its block.
        def abandon(asked)
          piece = asked.bytes
          body = Enumerator.new do |out|
            Thread.new { 20.times { out << piece && Thread.pass } rescue nil } # rubocop:disable Style/RescueModifier
            out << piece
            raise "left" if asked["how"] == "raise"
          end
          [200, asked.fields, body]
        end

        # Lines that two threads yield at once.
        def two(asked)
          line = "#{asked.bytes}\n"
          body = Enumerator.new do |out|
            other = Thread.new { 20.times { out << line && Thread.pass } rescue nil } # rubocop:disable Style/RescueModifier
            20.times { out << line && Thread.pass }
            other.join
          end
          [200, asked.fields("content-type" => "text/plain"), body]
        end

        # Changes an Array while it is sent.
        def change(asked)
          pieces = Array.new(40) { asked.bytes }
          Thread.new { 20.times { pieces.pop && Thread.pass } && pieces.clear }
          [200, asked.fields, pieces]
        end

        private

        def leave(asked, kept) = [200, asked.fields, Leaving.new(asked, kept)]

        def misuse
          5.times do
            id, block = KEPT.pop(true)
            block.call(Pattern.bytes(id, 200))
          rescue ThreadError
            return # there is none
          rescue StandardError
            next # as it should be
          end
        end
      end
    end
  end
end
