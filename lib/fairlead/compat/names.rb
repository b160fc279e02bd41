# frozen_string_literal: true

module Fairlead
  # Names of other servers that applications know. Each of the files beside this one defines those of one server in terms
  # of Fairlead's own, for an application that requires it; nothing here is loaded otherwise.
  module Compat
    # Two libraries want the same name.
    class NameTaken < Error
      def initialize(gem)
        super("the gem #{gem} is loaded, but fairlead/compat/#{gem} replaces it: remove one of them " \
              "(`gem \"#{gem}\", require: false` in the Gemfile does not load the gem)")
      end
    end

    class << self
      # Raises NameTaken when the gem of that name has been loaded. A constant is ours when this file has been told so.
      def claim(constant, gem)
        raise NameTaken, gem if Object.const_defined?(constant) && !claimed.include?(constant)

        claimed << constant
      end

      # What stands where Fairlead has nothing of the kind: says what to do instead.
      def missing(name, instead)
        raise NotImplementedError, "#{name} is not supported by Fairlead #{VERSION}: #{instead}"
      end

      private

      def claimed = (@claimed ||= [])
    end
  end
end
