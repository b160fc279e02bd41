# frozen_string_literal: true

module Fairlead
  module Acme
    # The certificate of an order as listeners show it: the last text of its file that the engine could load. It stays in memory
    # when the file is missing or damaged later.
    class Shown
      KEPT = "the last usable certificate stays in use, and is written again"
      MISSING = "it counts as missing: another one is ordered"
      private_constant :KEPT, :MISSING

      # The reason why the file is ignored, for people; or nil.
      attr_reader :warning

      def initialize(order, store)
        @path = store.path_of(order)
        @order = order
        @store = store
      end

      # [path, text]; nil if there has been no usable text yet.
      def read
        text, fault = look
        @text = text if text && !fault
        @warning = fault && "acme: #{fault}; #{@text ? KEPT : MISSING}"
        [@path, @text] if @text
      end

      private

      # The text of the file, and the reason why it cannot be used.
      def look
        text = @store.folder.read(*@store.certificate(@order), most: Bundle::MOST_BYTES + 1)
        return [nil, ("#{@path} has disappeared" if @text)] unless text
        return [text, nil] if text == @text

        [text, Bundle.new(text, @path).fault]
      rescue SystemCallError => e
        [nil, "#{@path} cannot be read (#{Error.reason(e)})"]
      end
    end
  end
end
