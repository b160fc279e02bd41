# frozen_string_literal: true

module Fairlead
  module Soak
    # A request of a client of the soak: `/NAME?id=HEX&size=N&…`.
    class Asked
      # File with violations, in the folder of the server. The application writes it.
      VIOLATIONS = "violations"
      TIDIED = "tidied"

      def self.violation(text)
        File.write(VIOLATIONS, "#{text}\n", mode: "a")
      end

      attr_reader :env, :name

      def initialize(env)
        @env = env
        @name = env["PATH_INFO"].delete_prefix("/")
        @parameters = env["QUERY_STRING"].split("&").to_h { |pair| pair.split("=", 2) }
      end

      def [](parameter) = @parameters[parameter]

      def id = @id ||= @parameters.fetch("id").to_i(16)
      def size = @parameters["size"].to_i
      def bytes = Pattern.bytes(id, size)

      def known? = Application::PLACES.key?(@name) && @parameters["id"]&.match?(/\A\h{1,12}\z/)

      # Fields of the response. A client accepts only a response with its own number.
      def fields(others = {})
        { "x-id" => format("%x", id), "x-pid" => Process.pid.to_s }.merge(others)
      end

      # Compares the client's own address, sent in a field, with the server's view of it.
      def check_peer
        from = @env["HTTP_X_FROM"]
        return if from.nil? || from == @env["REMOTE_ADDR"]

        self.class.violation("a client from #{from} is #{@env["REMOTE_ADDR"].inspect} to the application (#{@name})")
      end
    end
  end
end
