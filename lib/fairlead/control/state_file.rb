# frozen_string_literal: true

module Fairlead
  module Control
    # The file that tells pumactl and deploy scripts the process, the control server and the folder of the server, with Puma's
    # keys and format. The supervisor writes it.
    module StateFile
      KEYS = %w[pid control_url control_auth_token running_from].freeze

      LINE = /\A(?<key>\w+): +(?<value>\S.*?)\s*\z/
      private_constant :LINE

      # key => text; empty if there is no such file. Raises StateFileError.
      def self.read(path)
        lines = File.readlines(path, mode: "rb").filter_map { |line| LINE.match(SystemText.decode(line)) }
        lines.to_h { |line| [line[:key], line[:value].sub(/\A"(.*)"\z/, '\1').gsub(/\\(.)/, '\1')] }.slice(*KEYS)
      rescue Errno::ENOENT
        {}
      rescue SystemCallError => e
        raise StateFileError.new(path, Error.reason(e))
      end
    end
  end
end
