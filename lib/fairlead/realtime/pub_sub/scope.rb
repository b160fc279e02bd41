# frozen_string_literal: true

module Fairlead
  module PubSub
    # Limits a message to some processes of this server; given instead of an engine.
    class Scope < Engine
      # The number of the scope in the extension.
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
