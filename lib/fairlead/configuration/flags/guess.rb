# frozen_string_literal: true

require "did_you_mean"

module Fairlead
  class Configuration
    class Flags
      # The probable meaning of an unknown flag: a misspelling, a beginning, a name in a configuration file, or a flag of
      # another server.
      module Guess
        # Flags of rackup, `rails server` and others.
        FOREIGN = {
          "-b tcp://HOST:PORT" => %w[-o --host --address --listen],
          "-C" => %w[-c --config-file], "-d" => %w[-D --daemonize], "-e" => %w[-E --env], "-b ssl://HOST:PORT?cert=PATH&key=PATH" => %w[--tls --ssl]
        }.flat_map { |ours, theirs| theirs.map { |flag| [flag, ours] } }.to_h.freeze

        class << self
          # The message about +flag+.
          def of(flag)
            return "unknown option; use #{FOREIGN.fetch(flag)}" if FOREIGN.key?(flag)

            *others, last = flag.start_with?("--") ? names.select { |name| name.start_with?(flag) }.sort_by(&:size) : []
            return "ambiguous option; did you mean #{others.join(", ")} or #{last}?" if others.any?

            in_file(flag) || "unknown option#{spelling(flag)}"
          end

          private

          def names = Options.flat_map(&:long_flags).map { |name| "--#{name}" }

          # +flag+ is the name of a method.
          def in_file(flag)
            entry = Options[flag.delete_prefix("--").tr("-", "_").to_sym] or return
            entry.flag? ? "unknown option; use --#{entry.long_flags.first}" : "unknown option; only a configuration file can set #{entry.name}"
          end

          def spelling(flag)
            guess = DidYouMean::SpellChecker.new(dictionary: names).correct(flag).first
            "; did you mean #{guess}?" if guess
          end
        end
      end
    end
  end
end
