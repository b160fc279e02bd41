# frozen_string_literal: true

module Fairlead
  module Control
    # The head of a request to the control server: of it count the path, the query and a few fields.
    class Request
      # The head cannot be read as HTTP/1.
      class Malformed < StandardError; end

      LINE = %r{\A[A-Z]+ (?:https?://[^/? ]*)?(?<path>/[^? ]*)(?:\?(?<query>\S*))? HTTP/1\.[01]\z}

      attr_reader :path, :query

      # +head+: up to the empty line. Raises Malformed.
      def initialize(head)
        line, *fields = head.b.split(/\r?\n/)
        match = LINE.match(line.to_s) or raise Malformed

        @path = match[:path]
        @query = match[:query].to_s
        @fields = fields.to_h { |field| pair(field) }
      end

      # The value of a field, or nil.
      def [](name) = @fields[name]

      # The last part of the path, which names the command.
      def command = path.split("/").last.to_s

      # The values of a parameter, as they were sent.
      def parameters(name)
        query.split("&").filter_map { |part| part.delete_prefix("#{name}=") if part.start_with?("#{name}=") }
      end

      private

      def pair(field)
        name, colon, value = field.partition(":")
        raise Malformed if colon.empty? || name.empty? || name.match?(/\s/)

        [name.downcase, value.strip]
      end
    end
  end
end
