# frozen_string_literal: true

module Bench
  module Plot
    # A colour for each server, the same in every plot: mid tones that contrast with white and with near black.
    module Palette
      COLOURS = {
        "fairlead" => "#2f81f7", "fairlead-no-room" => "#79b8ff", "fairlead-no-slices" => "#54aeff", "native" => "#8b949e", "puma" => "#e5534b",
        "iodine" => "#d29922", "falcon" => "#db6d28", "itsi" => "#b083f0", "unicorn" => "#46954a", "thin" => "#e275ad",
        "webrick" => "#39a0a0", "agoo" => "#a0793d", "puma-cable" => "#e5534b", "puma-faye" => "#e275ad",
        "fairlead-public" => "#2f81f7", "fairlead-busy" => "#79b8ff", "fairlead-plain" => "#79b8ff", "fairlead-sendfile" => "#1b5fc1",
        "fairlead-to-path" => "#54aeff", "nginx" => "#3f9142", "nginx-cached" => "#7fb069", "iodine-public" => "#d29922",
        "puma-no-preload" => "#a0793d", "puma-preload" => "#e5534b", "puma-warmup" => "#e275ad", "puma-fork-worker" => "#db6d28",
        "fairlead-refork" => "#1b5fc1", "fairlead-warm-up" => "#39a0a0"
      }.freeze

      # Not a Ruby server, or not the default configuration: drawn differently from the competitors.
      REFERENCES = %w[native fairlead-no-room fairlead-no-slices fairlead-plain fairlead-busy].freeze

      module_function

      def colour(server)
        COLOURS.fetch(server, "#768390")
      end

      def dashes(server)
        "5 4" if REFERENCES.include?(server)
      end

      def opacity(server)
        REFERENCES.include?(server) ? 0.45 : 0.9
      end
    end
  end
end
