# frozen_string_literal: true

require_relative "../../support/byte_ranges"

module StaticFiles
  # The part of a response to a range request that must not depend on the server. The boundary of a multipart/byteranges body
  # may differ, and so may the bodies of errors and redirects, and their encoding.
  #
  # +parts+: [first byte, last byte, size of the file, bytes] of each, or nil for a body without parts.
  Outcome = Struct.new(:status, :range, :content_length, :coding, :body, :parts, keyword_init: true) do
    # +answer+: a response of HttpClient.
    def self.of(answer)
      common = { status: answer.status, range: answer["content-range"] }
      return new(**common) if answer.status >= 300

      common[:coding] = answer["content-encoding"]
      return new(**common, content_length: answer["content-length"], body: answer.body) unless answer["content-type"].to_s.start_with?("multipart/")

      new(**common, parts: answer.body.empty? ? [] : Fairlead::Test::ByteRanges.parts(answer).map { |part| part.to_a.drop(1) })
    end

    # Returns true if the body is +content+ or the claimed part of it. An empty body is correct, too.
    def true_to?(content)
      case status
      when 200 then [content, ""].include?(body)
      when 206 then claims.all? { |first, last, size, bytes| size == content.bytesize && ["", content.byteslice(first..last)].include?(bytes) }
      else body.nil?
      end
    end

    # Short form: "206, bytes 5-9/26", "206, 3 parts", "200, 26 bytes", "304".
    def to_s
      return "#{status}, #{parts.size} parts" if parts&.any?

      [status, range || (content_length && "#{content_length} bytes")].compact.join(", ")
    end

    private

    def claims = parts || [[*range.scan(/\d+/).map { |digits| Integer(digits, 10) }, body]]
  end
end
