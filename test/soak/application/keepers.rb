# frozen_string_literal: true

module Fairlead
  module Soak
    # Applications that keep objects lent for a request, and use them long after its end: their calls must fail without an
    # effect on other requests.
    module Keepers
      # [id, kept object], at most MOST of them.
      KEPT = Queue.new
      MOST = 50

      # Lets other requests use the kept object once its response has been sent: before, they would write into it from a
      # second thread (see .two).
      class Body < Bodies::Pieces
        attr_writer :kept

        def initialize(asked, pieces = [asked.bytes])
          @asked = asked
          super(pieces)
        end

        def close
          super
          Keepers.keep(@asked.id, @kept)
        end
      end

      # Keeps the block of its own #each.
      class Each < Body
        def each(&block)
          @kept = block
          super
        end
      end

      # Header fields that are not a Hash, as Rack 2 allows. Their body keeps the block of #each.
      Fields = Struct.new(:fields, :body) do
        def each(&block)
          body.kept = block
          fields.each(&block)
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

        def keep_block(asked) = [200, asked.fields, Each.new(asked, Bodies.cut(asked.bytes))]

        def keep_fields(asked)
          body = Body.new(asked)
          [200, Fields.new(asked.fields, body), body]
        end

        def keep_hints(asked) = leave(asked, ->(bytes) { asked.env["rack.early_hints"]&.call("link" => bytes) })
        def keep_hijack(asked) = leave(asked, ->(bytes) { asked.env["rack.hijack"].call.write(bytes) })

        # Misuses kept objects of other requests while it yields its own body.
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

        # Lines from two threads that yield at the same time.
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

        def leave(asked, kept) = [200, asked.fields, Body.new(asked).tap { |body| body.kept = kept }]

        def misuse
          5.times do
            id, block = KEPT.pop(true)
            block.call(Pattern.bytes(id, 200))
          rescue ThreadError
            return # there is none
          rescue StandardError
            next # correct
          end
        end
      end
    end
  end
end
