# frozen_string_literal: true

module Fairlead
  module Options
    # The types of options. A type turns an argument (a String from a flag or the environment, or a Ruby value from the
    # configuration file) into the canonical value, or raises Invalid with the reason.
    module Types
      # The message completes the sentence "<option>: …".
      class Invalid < StandardError
        def self.because(expectation, value)
          new("must be #{expectation}, not #{value.inspect}")
        end
      end

      # The superclass of all types; each overrides #parse and #expectation.
      class Type
        # The placeholder for the value in --help: "N"; "[N]" if it may be left out; "=[N]" if it may be left out, and has to
        # follow a "=".
        attr_reader :placeholder

        def initialize(placeholder)
          @placeholder = placeholder
        end

        # The unit of the values, or nil.
        def unit = nil

        # The value; relative paths begin at the folder that the block returns. Raises Invalid.
        def resolve(value) = value

        # The value as a person would write it.
        def format(value) = value.to_s

        # The value for the engine.
        def to_engine(value) = value

        # True if the values are true and false.
        def boolean? = false

        # The value of the option when it is given without one; nil if it needs one.
        def implied = nil

        # True if several arguments are one value.
        def list? = false

        private

        def invalid!(value)
          raise Invalid.because(expectation, value)
        end
      end

      # A whole number.
      class Count < Type
        def initialize(range, placeholder: "N")
          super(placeholder)
          @range = range
        end

        # The largest allowed number.
        def most = @range.end

        def expectation
          @range.end ? "a whole number from #{@range.begin} to #{@range.end}" : "a whole number of at least #{@range.begin}"
        end

        def parse(value)
          number = value.is_a?(String) ? Integer(value, 10, exception: false) : value
          number.is_a?(Integer) && @range.cover?(number) ? number : invalid!(value)
        end
      end

      # A whole number, where 0 means that there is no limit. So does Float::INFINITY.
      class Limit < Count
        def parse(value) = value == Float::INFINITY ? 0 : super
      end

      # A time in seconds: an Integer or a Float. The engine gets a Float.
      class Seconds < Type
        LONGEST = 365 * 24 * 3600

        # +zero+: true if 0 is allowed.
        def initialize(zero: false)
          super("SEC")
          @zero = zero
        end

        def unit = "seconds"

        def expectation
          "a number of seconds #{@zero ? "from 0" : "above 0,"} up to #{LONGEST} (a year)"
        end

        def parse(value)
          number = value.is_a?(String) ? Integer(value, 10, exception: false) || Float(value, exception: false) : value
          invalid!(value) unless number.is_a?(Integer) || number.is_a?(Float)

          least = @zero ? 0 : Float::MIN
          (least..LONGEST).cover?(number) ? number : invalid!(value)
        end

        def to_engine(value) = value.to_f
      end

      # A size in bytes, as a number or with a suffix for a power of 1024: 64k, 10m, 1g.
      class Bytes < Type
        SUFFIXES = { "" => 1, "k" => 1024, "m" => 1024**2, "g" => 1024**3 }.freeze
        LARGEST = 1024**5

        # +zero+: true if 0 is allowed although it is less than +least+.
        def initialize(least: 0, zero: false)
          super("SIZE")
          @least = least
          @zero = zero
        end

        def unit = "bytes"

        def expectation = "#{"0 or " if @zero}a size of at least #{format(@least)}, such as 500, 64k, 10m or 1g"

        def parse(value)
          number = value.is_a?(String) ? read(value) : value
          return number if number.is_a?(Integer) && (number.between?(@least, LARGEST) || (@zero && number.zero?))

          invalid!(value)
        end

        def format(value)
          suffix, factor = SUFFIXES.reverse_each.find { |_, size| value >= size && (value % size).zero? } || ["", 1]
          "#{value / factor}#{suffix}"
        end

        private

        def read(text)
          match = /\A(\d+)([kmg]?)\z/i.match(text)
          match && (Integer(match[1], 10) * SUFFIXES.fetch(match[2].downcase))
        end
      end

      # Yes or no.
      class Flag < Type
        WORDS = { "true" => true, "yes" => true, "on" => true, "1" => true,
                  "false" => false, "no" => false, "off" => false, "0" => false }.freeze

        def initialize
          super(nil)
        end

        def boolean? = true

        def implied = true

        def expectation = "true or false"

        def parse(value)
          WORDS.fetch(value.to_s.downcase) { invalid!(value) }
        end
      end

      # One of a few words; the value is a Symbol.
      class Choice < Type
        def initialize(*words)
          super(words.join("|"))
          @words = words
        end

        def expectation = "one of #{@words.join(", ")}"

        def parse(value)
          @words.find { |word| word.to_s == value.to_s } || invalid!(value)
        end
      end

      # A word, a name, a path: any text that is not empty and has no NUL.
      class Text < Type
        def expectation = "non-empty text"

        def parse(value)
          text = value.respond_to?(:to_path) ? value.to_path : value
          text = text.to_s if text.is_a?(Symbol)
          text.is_a?(String) && !text.b.strip.empty? && !text.b.include?("\0") ? SystemText.decode(text) : invalid!(value)
        end
      end

      # A path, relative to the folder in which the server runs.
      class Path < Text
        def expectation = "a path"

        def parse(value)
          text = super
          SystemText.absolute(text) if text.start_with?("~")
          text
        rescue ArgumentError
          raise Invalid, "#{value.inspect} #{SystemText::HOMELESS}"
        end
      end

      # A folder that exists; the value is its absolute path.
      class Folder < Path
        def expectation = "an existing folder"

        def resolve(value)
          path = SystemText.absolute(value, yield)
          File.directory?(path) ? path : invalid!(value)
        end
      end

      # The folder in which the server runs; relative to the current one.
      class StartFolder < Folder
        def parse(value) = resolve(super) { Dir.pwd }
      end

      # An address to listen on; see Fairlead::Binding. +served+: true if the engine serves it.
      class Address < Text
        def initialize(placeholder, served: true)
          super(placeholder)
          @served = served
        end

        def expectation
          tls = "ssl://[::]:443?cert=a.pem&key=a.key or " if @served
          "an address such as tcp://127.0.0.1:9292#{tls ? ", #{tls}" : " or "}unix:///run/app.sock"
        end

        def parse(value)
          binding = Binding.parse(super)
          check_unserved(binding) unless @served

          binding.address
        rescue BindError => e
          raise Invalid, e.message
        end

        private

        # Refuses parameters that only the engine supports.
        def check_unserved(binding)
          raise Invalid, "proxy_protocol is for the addresses of bind" if binding.proxy_protocol
          raise Invalid, "there is no TLS at this address; use tcp://… or unix://…" if binding.is_a?(Binding::Ssl)
        end
      end
    end
  end
end

require_relative "acme_option_types"
require_relative "file_option_types"
require_relative "process_option_types"
require_relative "request_option_types"
require_relative "tls_option_types"
