# frozen_string_literal: true

module Fairlead
  module PubSub
    # The processes of this server that a message is for, in the place of an engine.
    class Scope < Engine
      # What the extension calls it.
      attr_reader :number

      def initialize(name, number)
        super()
        @name = name
        @number = number
        freeze
      end

      def publish(to, message) = Fairlead.publish(to, message, self)

      def inspect = "Fairlead::PubSub::#{@name}"
      alias to_s inspect
    end
  end
end
