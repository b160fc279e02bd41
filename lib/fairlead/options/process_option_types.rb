# frozen_string_literal: true

module Fairlead
  module Options
    # The types of options about processes, control and logs.
    module Types
      # A time in seconds that is not shorter than a tick of the engine's monitor, or 0.
      class TimeSlice < Seconds
        ALLOWED = (0.001..1)

        def expectation = "0, or a number of seconds from #{ALLOWED.begin} to #{ALLOWED.end}"

        def parse(value)
          number = super
          number.zero? || ALLOWED.cover?(number) ? number : invalid!(value)
        end

        def initialize
          super(zero: true)
        end
      end

      # A part of a whole: a number from 0 to 1.
      class Part < Type
        def initialize
          super("PART")
        end

        def expectation = "a number from 0 to 1, such as 0.1"

        def parse(value)
          number = value.is_a?(String) ? Float(value, exception: false) : value
          (number.is_a?(Integer) || number.is_a?(Float)) && number.between?(0, 1) ? number : invalid!(value)
        end
      end

      # A number of requests, with a default number if none is given.
      class Requests < Count
        attr_reader :implied

        def initialize(range, implied:)
          super(range, placeholder: "=[N]")
          @implied = implied
        end
      end

      # A number of workers, or one for each processor.
      class Workers < Count
        def expectation = "#{super}, or auto"

        def parse(value)
          return super unless value.to_s == "auto"

          [Processors.available, most].min
        end
      end

      # The sockets of systemd that are listened on without being named: :none, :all, or :only.
      class Activation < Type
        WORDS = { "true" => :all, "all" => :all, "false" => :none, "none" => :none, "only" => :only }.freeze

        def initialize
          super("[only]")
        end

        def expectation = "true, false or only"

        def implied = :all

        def parse(value)
          WORDS.fetch(value.to_s) { invalid!(value) }
        end

        def format(value) = WORDS.key(value)
      end

      # Text that may be empty.
      class Label < Text
        def expectation = "text"

        def parse(value) = value == "" ? value : super
      end

      # Text that is not shown to people.
      class Secret < Text
        # The word for none at all.
        NONE = "none"

        def format(value) = value == NONE ? NONE : "(set)"
      end

      # The address of the control server, or auto.
      class ControlAddress < Text
        def expectation = "auto, or an address such as tcp://127.0.0.1:9293 or unix:///run/control.sock"

        def parse(value) = value.to_s == "auto" ? "auto" : Address.new(placeholder, served: false).parse(value)
      end

      # The permissions of a file: a number, or text with its octal digits.
      class Mode < Type
        def expectation = "permissions such as 0640"

        def parse(value)
          number = value.is_a?(String) ? Integer(value, 8, exception: false) : value
          number.is_a?(Integer) && number.between?(0, 0o777) ? number : invalid!(value)
        end

        def format(value) = Kernel.format("0%o", value)
      end

      # The format of access lines: a word, which becomes a Symbol, or text with the directives that docs/guides/deployment.md lists.
      class LogFormat < Text
        WORDS = %i[common combined json].freeze

        DIRECTIVE = /
          % (?: [%hatlurmUqHbBDTP] | >?s | \{c\}[ah] | \{(?:s|ms|us|seconds)\}T | \{(?:queue_time|waiting_room_time|lock_wait)\}W
              | \{trace_id\}x | \{[!\#$%&'*+\-.^`|~\w]+\}i )
        /x

        def expectation = "common, combined, json, or a line with directives such as %h and %{lock_wait}W"

        def parse(value)
          word = WORDS.find { |known| known.to_s == value.to_s }
          return word if word

          text = super
          line?(text) ? text : invalid!(value)
        end

        def to_engine(value) = value.to_s

        private

        # True if it has only known directives, at least one, and no line end.
        def line?(text)
          text.encoding == Encoding::UTF_8 && text.include?("%") && !text.match?(/[\r\n]/) && !text.gsub(DIRECTIVE, "").include?("%")
        end
      end

      # A block, or an object with a method +call+. Only a configuration file or a program can give it.
      class Callable < Type
        def initialize
          super(nil)
        end

        def expectation = "a block, or an object that responds to call"

        def parse(value) = value.respond_to?(:call) ? value : invalid!(value)

        def format(value)
          place = value.source_location if value.respond_to?(:source_location)
          place ? "a block (#{place.join(":")})" : value.class.name.to_s
        end
      end

      # Requests before the server serves: paths, URLs, callables and :auto. The value is a list of them.
      class WarmUp < Type
        TARGET = %r{\A(?:https?://[^\s/?#]+)?/[^ #[:cntrl:]]*\z}

        def initialize
          super("PATH")
        end

        def expectation = "paths or URLs such as /posts, auto, none, or a block"

        def list? = true

        def parse(value)
          steps = value.is_a?(Array) ? value : [value]
          steps.flat_map { |step| step_of(step) }
        end

        def format(value)
          return "none" if value.empty?

          value.map { |step| step.respond_to?(:call) ? Callable.new.format(step) : step }.join(", ")
        end

        private

        def step_of(value)
          case value.to_s
          when "auto" then [:auto]
          when "none", "false" then []
          when TARGET then value.is_a?(String) ? [value] : invalid!(value)
          else value.respond_to?(:call) ? [value] : invalid!(value)
          end
        end
      end

      # An object that takes messages; see Fairlead::EventLog.
      class Log < Type
        def initialize
          super(nil)
        end

        def expectation = "a Logger, or an object that responds to info, warn and error, or to write, or to <<"

        def parse(value)
          suits = EventLog::Logger.suits?(value) || EventLog::Text.suits?(value)
          suits && !misleading?(value) ? value : invalid!(value)
        end

        def format(value) = value.class.name.to_s

        private

        # A number and a text have #<< for something else, and Pathname#write replaces the file.
        def misleading?(value) = value.is_a?(Numeric) || value.is_a?(String) || (value.respond_to?(:to_path) && !value.is_a?(IO))
      end
    end
  end
end
