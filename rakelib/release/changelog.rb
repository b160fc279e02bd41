# frozen_string_literal: true

require "time"

module Release
  # CHANGELOG.md: one section for each version, the newest first, and before them the changes that no version has yet.
  class Changelog
    UNRELEASED = "Unreleased"

    def initialize(text)
      @text = text
    end

    # The text of the section of a version, without its heading; nil if there is none.
    def section(name)
      @text.split(/^(?=# )/).find { |section| section.match?(/\A# #{Regexp.escape(name)}(?: \(|\n)/) }&.lines&.drop(1)&.join&.strip
    end

    # The changes without a version become the section of this one.
    def release(version, date)
      raise ArgumentError, "CHANGELOG.md already has a section #{version}" if section(version)
      raise ArgumentError, "CHANGELOG.md has no changes under `# #{UNRELEASED}`" if section(UNRELEASED).to_s.empty?

      @text.sub(/^# #{UNRELEASED}\n/, "# #{version} (#{date.iso8601})\n")
    end
  end
end
