# frozen_string_literal: true

require "pathname"

module Fairlead
  module Soak
    # Bodies of every form that a Rack application may return.
    module Bodies
      FILES = File.join(Dir.pwd, "files")

      # Yields its pieces, and can run a block in the middle.
      class Pieces
        def initialize(pieces, pause: 0, &trouble)
          @pieces = pieces
          @pause = pause
          @trouble = trouble
          @closed = false
          Ends.open(:bodies)
        end

        def each
          @pieces.each_with_index do |piece, index|
            yield piece
            sleep(@pause) if @pause.positive?
            @trouble&.call if index == @pieces.size / 2
          end
        end

        def close
          return Asked.violation("a body was closed twice") if @closed

          @closed = true
          Ends.close(:bodies)
        end
      end

      # Like a body of Rails: to_ary exists, and fails if the response is streamed.
      class Streamed < Pieces
        def to_ary = raise(LocalJumpError, "no block given (yield)")
      end

      # A file, named in one of the possible ways.
      class Named < Pieces
        attr_reader :to_path

        def initialize(path)
          super([])
          @to_path = path
        end

        def each = yield(File.binread(@to_path))
      end

      module_function

      # Returns [fields, body] in the form of that name.
      def make(form, bytes)
        case form
        when "array" then [{}, [bytes]]
        when "several" then [{}, cut(bytes)]
        when "each" then [{}, Pieces.new(cut(bytes))]
        when "slow" then [{}, Pieces.new(cut(bytes, 4), pause: 0.005)]
        when "enumerator" then [{}, Enumerator.new { |out| cut(bytes).each { |piece| out << piece } }]
        when "length" then [{ "content-length" => bytes.bytesize.to_s }, Pieces.new(cut(bytes))]
        when "streamed" then [{ "content-length" => bytes.bytesize.to_s }, Streamed.new(cut(bytes))]
        when "call" then [{}, ->(stream) { cut(bytes).each { |piece| stream.write(piece) } && stream.close }]
        when "kept" then [{}, ->(stream) { Thread.new { write_later(stream, bytes) } }]
        else raise ArgumentError, "unknown form #{form}"
        end
      end

      # Returns [fields, body] of the file of that name.
      def file(form, name)
        path = File.join(FILES, name)
        case form
        when "path" then [{}, Named.new(path)]
        when "pathname" then [{}, Named.new(Pathname.new(path))]
        when "open" then [{}, File.open(path, "rb")]
        else [{ "x-sendfile" => path }, Pieces.new([])]
        end
      end

      # Cuts into pieces of unequal sizes.
      def cut(bytes, count = 7)
        at = 0
        pieces = (1..count).map do |number|
          upto = number == count ? bytes.bytesize : bytes.bytesize * number * number / (count * count)
          bytes.byteslice(at...upto).tap { at = upto }
        end
        pieces.reject(&:empty?)
      end

      def write_later(stream, bytes)
        cut(bytes).each { |piece| stream.write(piece) }
      rescue IOError
        nil # the client has left
      ensure
        stream.close
      end
    end
  end
end
