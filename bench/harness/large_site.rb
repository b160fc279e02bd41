# frozen_string_literal: true

module Bench
  # A generated application with the amount of code of an application with 60 gems: as many files, thousands of classes, and tens of
  # thousands of methods with their constants and literals. A request runs methods of some classes. Which ones, its path says. So the first
  # requests fill caches that belong to the code: of method calls, constants and instance variables, and memoized values.
  module LargeSite
    LIBRARIES = 60
    CLASSES = 30
    STEPS = 12

    # Number of paths, and of classes that a request uses.
    PATHS = 500
    EACH = 30

    RACKUP = <<~'RUBY'
      # frozen_string_literal: true

      require_relative "library"
      run Library::Application.new
    RUBY

    APPLICATION = <<~RUBY.freeze
      # frozen_string_literal: true

      # Code for all libraries.
      module Library
        PARTS = []

        # Runs parts of the libraries; the path says which.
        class Application
          def call(env)
            number = Integer(env["PATH_INFO"].delete("^0-9"), 10, exception: false) || 0
            lines = Array.new(#{EACH}) { |index| PARTS[(number * 131 + index * index * 17 + index) % PARTS.size].new(number).run }
            [200, { "content-type" => "text/plain" }, [lines.join("\\n")]]
          end
        end
      end

      Dir[File.join(__dir__, "library/*.rb")].sort.each { |file| require file }
    RUBY

    module_function

    # Path => content.
    def files
      @files ||= { "config.ru" => RACKUP, "library.rb" => APPLICATION }.merge(
        (1..LIBRARIES).to_h { |number| [format("library/part%02d.rb", number), library(number)] }
      )
    end

    # The requests, as Drive::Pages::Page.
    def pages
      (0...PATHS).map { |number| Drive::Pages::Page.new(weight: 1, name: "page", verb: "GET", path: "/#{number}") }
    end

    def library(number)
      classes = (1..CLASSES).map { |index| one_class(index) }.join("\n")
      "# frozen_string_literal: true\n\nmodule Library\nmodule Part#{number}\n#{classes}end\nend\n"
    end

    def one_class(index)
      <<~RUBY
        class Thing#{index}
          NAME = "thing #{index}"
          LIMITS = { first: #{index}, second: #{index * 3}, third: "third of #{index}" }.freeze
          WORDS = %w[alpha#{index} beta#{index} gamma#{index} delta#{index}].freeze
          @known = {}
          class << self
            attr_reader :known
          end
          attr_reader :seed, :notes

          def initialize(seed)
            @seed = seed
            @notes = []
          end

          def run
            self.class.known[seed % 8] ||= "\#{NAME} with seed \#{seed % 8}"
            step#{1 + index % STEPS}(seed, 3)
            "\#{NAME}: \#{notes.size} \#{self.class.known[seed % 8]}"
          end
        #{(1..STEPS).map { |step| one_method(step, index) }.join("\n")}end
        PARTS << Thing#{index}
      RUBY
    end

    def one_method(step, index)
      following = 1 + (step + index) % STEPS
      <<~RUBY
        def step#{step}(value, depth = 0, **options)
          limit = options.fetch(:limit) { LIMITS[:first] + #{step} }
          @memo#{step} ||= WORDS.map { |word| "\#{word}-#{step}" }
          notes << "step #{step}: \#{value % (limit + 1)}" if value.even?
          case value % 3
          when 0 then notes.push(LIMITS[:third].upcase)
          when 1 then notes.concat(@memo#{step}.select { |word| word.end_with?("#{step}") })
          else notes << [value, limit].max.to_s
          end
          return value if depth.zero?

          step#{following}(value + #{step}, depth - 1, limit: limit + depth)
        end
      RUBY
    end
    private_class_method :library, :one_class, :one_method
  end
end
