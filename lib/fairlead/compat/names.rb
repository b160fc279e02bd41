# frozen_string_literal: true

module Fairlead
  # The interfaces of other servers, for applications written for them. Each file beside this one defines the interface of one
  # server, and is loaded only if the application requires it.
  module Compat
    # Another library has already defined the constant.
    class NameTaken < Error
      def initialize(gem)
        super("the gem #{gem} is loaded, but fairlead/compat/#{gem} replaces it: remove one of them " \
              "(`gem \"#{gem}\", require: false` in the Gemfile does not load the gem)")
      end
    end

    class << self
      # Reserves a constant. Raises NameTaken if the gem has defined it.
      def claim(constant, gem)
        raise NameTaken, gem if Object.const_defined?(constant) && !claimed.include?(constant)

        claimed << constant
      end

      # Raises NotImplementedError, with an alternative.
      def missing(name, instead)
        raise NotImplementedError, "#{name} is not supported by Fairlead #{VERSION}: #{instead}"
      end

      private

      def claimed = (@claimed ||= [])
    end
  end
end
