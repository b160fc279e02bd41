# frozen_string_literal: true

module Iodine
  # Fairlead does not end TLS.
  class TLS
    def self.new(*)
      Fairlead::Compat.missing("Iodine::TLS", ListenOptions::INSTEAD[:tls])
    end
  end
end
