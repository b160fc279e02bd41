# frozen_string_literal: true

module Fairlead
  module Control
    # The file in which pumactl and deploy scripts look up the server: its process, its control server and its folder, with the
    # keys and in the form of Puma's. It appears whole or not at all, and whoever starts later replaces it.
    class StateFile
      KEYS = %w[pid control_url control_auth_token running_from].freeze

      # What the owner may do with it: it may contain a token.
      MODE = 0o600

      LINE = /\A(?<key>\w+): +(?<value>\S.*?)\s*\z/

      class << self
        # key => text; empty if there is no such file.
        def read(path)
          lines = File.readlines(path, mode: "rb").filter_map { |line| LINE.match(SystemText.decode(line)) }
          lines.to_h { |line| [line[:key], line[:value].sub(/\A"(.*)"\z/, '\1').gsub(/\\(.)/, '\1')] }.slice(*KEYS)
        rescue Errno::ENOENT
          {}
        rescue SystemCallError => e
          raise StateFileError.new(path, Error.reason(e))
        end
      end

      attr_reader :path

      def initialize(path, mode: nil)
        @path = SystemText.absolute(path)
        @mode = mode || MODE
      end

      # Writes these values (key => text or number); those that are nil are left out. Raises StateFileError.
      def write(values)
        @owner = Process.pid
        WholeFile.write(path, "---\n#{KEYS.filter_map { |key| line(key, values[key.to_sym])&.b }.join}", mode: @mode)
      rescue SystemCallError => e
        raise StateFileError.new(path, Error.reason(e))
      end

      # Removes the file, if it is that of this process.
      def remove
        return unless @owner == Process.pid

        File.unlink(path) if self.class.read(path)["pid"] == @owner.to_s
      rescue SystemCallError, StateFileError
        nil
      end

      private

      def line(key, value)
        return if value.nil?

        plain = value.is_a?(Integer) || (key != "running_from" && value.match?(%r{\A[a-z][\w:/.@?=-]*\z}i))
        "#{key}: #{plain ? value : quote(value)}\n"
      end

      def quote(text) = %("#{text.gsub(/["\\]/) { |mark| "\\#{mark}" }}")
    end
  end
end
