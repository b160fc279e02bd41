# frozen_string_literal: true

module Fairlead
  module Tls
    # Certificates, keys and passwords of keys that a program has as text, not as files. Addresses name them by their place,
    # such as "store:0". So no key is in an address, which appears in logs and in the title of the process. The name is Puma's.
    module Store
      PLACE = /\Astore:(?<index>\d+)\z/

      @texts = []
      @lock = Mutex.new

      class << self
        # The place of a text in PEM, or of an object that has one.
        def add(pem)
          text = (pem.respond_to?(:to_pem) ? pem.to_pem : pem).to_s
          @lock.synchronize { "store:#{@texts.index(text) || (@texts.push(text).size - 1)}" }
        end

        # The text at a place; nil if +place+ is not a place.
        def [](place)
          match = PLACE.match(place) or return
          @lock.synchronize { @texts[Integer(match[:index], 10)] } || raise(Invalid, "nothing is stored at #{place}")
        end

        # All texts; #replace sets all of them.
        def texts = @lock.synchronize { @texts.dup }
        def replace(texts) = @lock.synchronize { @texts.replace(texts) }

        # True if +place+ is the name of a place.
        def place?(name) = PLACE.match?(name)
      end
    end
  end
end
