# frozen_string_literal: true

module Iodine
  # Fairlead does not support TLS.
  class TLS
    def self.new(*)
      Fairlead::Compat.missing("Iodine::TLS", ListenOptions::INSTEAD[:tls])
    end
  end
end
