# frozen_string_literal: true

module Fairlead
  # The number of connections that may wait in the kernel to be accepted. The system has a limit, to which it lowers a greater
  # number without an error.
  module Backlog
    # The largest number that the option takes, and the number for "as many as the system allows".
    MOST = 65_535

    # The system's limit on Linux.
    FILE = "/proc/sys/net/core/somaxconn"

    class << self
      # The argument of listen(2) for the value of the option.
      def of(value) = value.zero? ? MOST : value

      # The system's limit; nil if it is not known.
      def limit
        Integer(File.read(FILE), exception: false)
      rescue SystemCallError
        nil
      end

      # The system's limit, if it is lower than +wanted+; otherwise nil.
      def shortage(wanted, limit: self.limit) = (limit if limit && limit < wanted)
    end
  end
end
