# frozen_string_literal: true

require "fileutils"

module StaticFiles
  # Requests for the comparison with nginx, and the folder that both servers serve.
  #
  # A request has a `range`, and other fields if necessary; :target, :method and :version only if they differ from `GET
  # /letters.txt HTTP/1.1`. `%{etag}` and `%{date}` stand for the server's own values for the file.
  module RangeRequests
    LETTERS = [*"a".."z"].join
    LARGE = Random.new(7).bytes(200_000)

    # Path => content. The first bytes of a gzip stream are enough: no client decompresses it.
    FILES = {
      "letters.txt" => LETTERS,
      "empty.txt" => "",
      "large.txt" => LARGE,
      "index.html" => "<!doctype html><title>Letters</title>",
      "folder/index.html" => "<!doctype html><title>Folder</title>",
      "app.js" => "console.log(1)\n" * 100,
      "app.js.gz" => "\x1F\x8B\b\0#{LETTERS}".b
    }.freeze

    # Modification time of all files: long ago, so that the date is a strong validator (RFC 9110 §8.8.2.2).
    CHANGED = Time.utc(2024, 2, 29, 12, 0, 0)

    def self.create(folder)
      FILES.each do |path, content|
        path = File.join(folder, path)
        FileUtils.mkdir_p(File.dirname(path))
        File.binwrite(path, content)
        File.utime(CHANGED, CHANGED, path)
      end
    end

    EARLIER = "Wed, 28 Feb 2024 12:00:00 GMT"
    LATER = "Fri, 01 Mar 2024 12:00:00 GMT"

    # RFC 9110 §14.1.1 and §14.2: one range.
    SINGLE = {
      "the first byte" => { range: "bytes=0-0" },
      "some bytes" => { range: "bytes=5-9" },
      "the last byte" => { range: "bytes=25-25" },
      "all bytes" => { range: "bytes=0-25" },
      "an end one too far" => { range: "bytes=0-26" },
      "an end far away" => { range: "bytes=20-999" },
      "an end of 2⁶³ - 1" => { range: "bytes=20-9223372036854775807" },
      "an end of 2⁶³" => { range: "bytes=20-9223372036854775808" },
      "an end of 2⁶⁴" => { range: "bytes=20-18446744073709551616" },
      "an end of 30 digits" => { range: "bytes=20-#{"9" * 30}" },
      "leading zeros" => { range: "bytes=0005-00000000000000000000000000000009" },
      "from the first byte on" => { range: "bytes=0-" },
      "from the last byte on" => { range: "bytes=25-" },
      "from behind the end on" => { range: "bytes=26-" },
      "a range behind the end" => { range: "bytes=100-200" },
      "a start of 2⁶³ - 1" => { range: "bytes=9223372036854775807-" },
      "a start of 2⁶⁴" => { range: "bytes=18446744073709551616-" },
      "a start of 30 digits" => { range: "bytes=#{"9" * 30}-" },
      "the last one" => { range: "bytes=-1" },
      "as many as there are" => { range: "bytes=-26" },
      "the last of more than there are" => { range: "bytes=-27" },
      "the last 2⁶⁴" => { range: "bytes=-18446744073709551616" },
      "the last none" => { range: "bytes=-0" },
      "an end before the start" => { range: "bytes=9-5" },
      "an end before a start behind the end" => { range: "bytes=99-5" },
      "HTTP/1.0" => { range: "bytes=5-9", version: "1.0" }
    }.freeze

    MANY = {
      "two ranges" => { range: "bytes=0-0,25-25" },
      "three ranges" => { range: "bytes=0-4,10-14,20-24" },
      "ranges out of order" => { range: "bytes=20-24,0-4" },
      "adjacent ranges" => { range: "bytes=0-4,5-9" },
      "halves" => { range: "bytes=0-12,13-25" },
      "overlapping ranges" => { range: "bytes=0-9,5-14" },
      "one range twice" => { range: "bytes=0-0,0-0" },
      "a range inside another" => { range: "bytes=0-9,3-4" },
      "a start and a suffix" => { range: "bytes=0-4,-5" },
      "a suffix twice" => { range: "bytes=-5,-5" },
      "the whole and a byte" => { range: "bytes=0-25,0-0" },
      "the whole twice" => { range: "bytes=0-,0-" },
      "each byte" => { range: "bytes=#{(0..25).map { |at| "#{at}-#{at}" }.join(",")}" },
      "each byte and one more" => { range: "bytes=#{(0..25).map { |at| "#{at}-#{at}" }.join(",")},0-0" },
      "one that is satisfiable, then one that is not" => { range: "bytes=0-4,99-" },
      "one that is not satisfiable, then one that is" => { range: "bytes=99-,0-4" },
      "two that are satisfiable and one that is not" => { range: "bytes=0-4,99-100,-5" },
      "none that is satisfiable" => { range: "bytes=26-,100-200,-0" },
      "a suffix of none and a range" => { range: "bytes=-0,0-4" },
      "a range and one that ends before it starts" => { range: "bytes=0-4,9-5" },
      "a range and no range" => { range: "bytes=0-4,x" },
      "no range and a range" => { range: "bytes=x,0-4" },
      "an unsatisfiable range and no range" => { range: "bytes=99-,x" }
    }.freeze

    # The grammar of RFC 9110 §14.1.1 and §14.1.2, with the lists of §5.6.1.
    GRAMMAR = {
      "spaces behind commas" => { range: "bytes=0-4, 10-14" },
      "spaces and tabs around commas" => { range: "bytes=0-4 \t, \t10-14" },
      "space around the value" => { range: " \t bytes=5-9 \t " },
      "an empty element" => { range: "bytes=0-4,,10-14" },
      "an empty element first" => { range: "bytes=,0-4" },
      "an empty element last" => { range: "bytes=0-4," },
      "empty elements only" => { range: "bytes=,," },
      "a space before the range" => { range: "bytes= 5-9" },
      "a space before the equals sign" => { range: "bytes =5-9" },
      "a space before the hyphen" => { range: "bytes=5 -9" },
      "a space behind the hyphen" => { range: "bytes=5- 9" },
      "a space in a suffix" => { range: "bytes=- 5" },
      "a space in a number" => { range: "bytes=1 0-14" },
      "a unit in capitals" => { range: "BYTES=5-9" },
      "another unit" => { range: "items=5-9" },
      "a unit that begins alike" => { range: "bytesize=5-9" },
      "no unit" => { range: "5-9" },
      "an equals sign first" => { range: "=5-9" },
      "a unit only" => { range: "bytes" },
      "a unit and an equals sign only" => { range: "bytes=" },
      "an empty value" => { range: "" },
      "a colon" => { range: "bytes:5-9" },
      "two equals signs" => { range: "bytes==5-9" },
      "a hyphen only" => { range: "bytes=-" },
      "a number only" => { range: "bytes=5" },
      "two hyphens" => { range: "bytes=5--9" },
      "two hyphens before a suffix" => { range: "bytes=--5" },
      "a third number" => { range: "bytes=5-9-12" },
      "letters" => { range: "bytes=a-b" },
      "a letter as the end" => { range: "bytes=5-b" },
      "a plus sign" => { range: "bytes=+5-9" },
      "hexadecimal numbers" => { range: "bytes=0x5-0x9" },
      "fractions" => { range: "bytes=5.0-9.0" },
      "a parameter" => { range: "bytes=5-9;q=1" },
      "bytes beyond ASCII" => { range: "bytes=5–9" },
      "quotes" => { range: 'bytes="5-9"' },
      "two fields" => { range: %w[bytes=0-4 bytes=10-14] }
    }.freeze

    # RFC 9110 §13.1.5.
    IF_RANGE = {
      "If-Range with the etag" => { range: "bytes=5-9", "if-range": "%<etag>s" },
      "If-Range with another etag" => { range: "bytes=5-9", "if-range": '"other"' },
      "If-Range with the etag made weak" => { range: "bytes=5-9", "if-range": "W/%<etag>s" },
      "If-Range with a list of etags" => { range: "bytes=5-9", "if-range": '"other", %<etag>s' },
      "If-Range with an asterisk" => { range: "bytes=5-9", "if-range": "*" },
      "If-Range with a word" => { range: "bytes=5-9", "if-range": "other" },
      "If-Range with nothing" => { range: "bytes=5-9", "if-range": "" },
      "If-Range with the date" => { range: "bytes=5-9", "if-range": "%<date>s" },
      "If-Range with an earlier date" => { range: "bytes=5-9", "if-range": EARLIER },
      "If-Range with a later date" => { range: "bytes=5-9", "if-range": LATER },
      "If-Range with the date as of RFC 850" => { range: "bytes=5-9", "if-range": "Thursday, 29-Feb-24 12:00:00 GMT" },
      "If-Range with the date as of asctime" => { range: "bytes=5-9", "if-range": "Thu Feb 29 12:00:00 2024" },
      "If-Range with another zone" => { range: "bytes=5-9", "if-range": "Thu, 29 Feb 2024 12:00:00 CET" },
      "If-Range with the etag, for many ranges" => { range: "bytes=0-4,-5", "if-range": "%<etag>s" },
      "If-Range with another etag, for many ranges" => { range: "bytes=0-4,-5", "if-range": '"other"' },
      "If-Range with the etag, for what is not there" => { range: "bytes=99-", "if-range": "%<etag>s" },
      "If-Range with another etag, for what is not there" => { range: "bytes=99-", "if-range": '"other"' },
      "If-Range without a range" => { "if-range": "%<etag>s" }
    }.freeze

    # RFC 9110 §13.2.2: a range comes last.
    CONDITIONS = {
      "If-None-Match with the etag" => { range: "bytes=5-9", "if-none-match": "%<etag>s" },
      "If-None-Match with the etag made weak" => { range: "bytes=5-9", "if-none-match": "W/%<etag>s" },
      "If-None-Match with another etag" => { range: "bytes=5-9", "if-none-match": '"other"' },
      "If-None-Match with a list" => { range: "bytes=5-9", "if-none-match": '"other", %<etag>s' },
      "If-None-Match with an asterisk" => { range: "bytes=5-9", "if-none-match": "*" },
      "If-None-Match with the etag, for what is not there" => { range: "bytes=99-", "if-none-match": "%<etag>s" },
      "If-Modified-Since the date" => { range: "bytes=5-9", "if-modified-since": "%<date>s" },
      "If-Modified-Since an earlier date" => { range: "bytes=5-9", "if-modified-since": EARLIER },
      "If-Modified-Since a later date" => { range: "bytes=5-9", "if-modified-since": LATER },
      "If-Modified-Since the date, If-None-Match with another etag" =>
        { range: "bytes=5-9", "if-none-match": '"other"', "if-modified-since": "%<date>s" },
      "If-Match with the etag" => { range: "bytes=5-9", "if-match": "%<etag>s" },
      "If-Match with the etag made weak" => { range: "bytes=5-9", "if-match": "W/%<etag>s" },
      "If-Match with another etag" => { range: "bytes=5-9", "if-match": '"other"' },
      "If-Match with an asterisk" => { range: "bytes=5-9", "if-match": "*" },
      "If-Match with another etag, for what is not there" => { range: "bytes=99-", "if-match": '"other"' },
      "If-Match with the etag, If-Range with another" => { range: "bytes=5-9", "if-match": "%<etag>s", "if-range": '"other"' },
      "If-Unmodified-Since the date" => { range: "bytes=5-9", "if-unmodified-since": "%<date>s" },
      "If-Unmodified-Since an earlier date" => { range: "bytes=5-9", "if-unmodified-since": EARLIER },
      "If-Unmodified-Since an earlier date, If-Match with the etag" =>
        { range: "bytes=5-9", "if-match": "%<etag>s", "if-unmodified-since": EARLIER }
    }.freeze

    # RFC 9110 §14.2: a range has a meaning for GET only.
    HEAD = {
      "HEAD" => { method: "HEAD" },
      "HEAD of a range" => { method: "HEAD", range: "bytes=5-9" },
      "HEAD of two ranges" => { method: "HEAD", range: "bytes=0-4,-5" },
      "HEAD of what is not there" => { method: "HEAD", range: "bytes=99-" },
      "HEAD of a malformed range" => { method: "HEAD", range: "bytes=a-b" },
      "HEAD and If-None-Match with the etag" => { method: "HEAD", range: "bytes=5-9", "if-none-match": "%<etag>s" }
    }.freeze

    EMPTY = {
      "an empty file" => { target: "/empty.txt" },
      "an empty file from its start on" => { target: "/empty.txt", range: "bytes=0-" },
      "the first byte of an empty file" => { target: "/empty.txt", range: "bytes=0-0" },
      "the last byte of an empty file" => { target: "/empty.txt", range: "bytes=-1" },
      "the last none of an empty file" => { target: "/empty.txt", range: "bytes=-0" },
      "two ranges of an empty file" => { target: "/empty.txt", range: "bytes=0-,-1" }
    }.freeze

    # A file that is too large for the memory cache, and as many ranges as attackers request.
    LARGE_FILE = {
      "a large file" => { target: "/large.txt" },
      "the middle of a large file" => { target: "/large.txt", range: "bytes=65535-131072" },
      "the start of a large file" => { target: "/large.txt", range: "bytes=0-99999" },
      "the end of a large file" => { target: "/large.txt", range: "bytes=-100000" },
      "two ranges of a large file" => { target: "/large.txt", range: "bytes=0-69999,100000-169999" },
      "more than a large file has" => { target: "/large.txt", range: "bytes=0-,0-,0-,0-" },
      "100 ranges" => { target: "/large.txt", range: "bytes=#{(1000..1099).map { |at| "#{at}-#{at}" }.join(",")}" },
      "101 ranges" => { target: "/large.txt", range: "bytes=#{(1000..1100).map { |at| "#{at}-#{at}" }.join(",")}" },
      "800 ranges" => { target: "/large.txt", range: "bytes=#{Array.new(800, "0-0").join(",")}" }
    }.freeze

    ELSEWHERE = {
      "the file of a folder" => { target: "/", range: "bytes=0-8" },
      "a folder without its slash" => { target: "/folder", range: "bytes=0-8" },
      "a file that does not exist" => { target: "/missing.txt", range: "bytes=0-8" },
      "what may not be compressed" => { target: "/app.js", range: "bytes=100-104", "accept-encoding": "gzip;q=0" }
    }.freeze

    # nginx has supported ranges of compressed files since 1.23.4.
    COMPRESSED = {
      "what is compressed already" => { target: "/app.js", range: "bytes=4-8", "accept-encoding": "gzip" },
      "the end of what is compressed already" => { target: "/app.js", range: "bytes=-5", "accept-encoding": "gzip" },
      "behind the end of what is compressed already" => { target: "/app.js", range: "bytes=100-104", "accept-encoding": "gzip" },
      "what is compressed, with the etag of what is not" =>
        { target: "/app.js", range: "bytes=4-8", "accept-encoding": "gzip", "if-range": "%<etag>s" }
    }.freeze

    GROUPS = [SINGLE, MANY, GRAMMAR, IF_RANGE, CONDITIONS, HEAD, EMPTY, LARGE_FILE, ELSEWHERE, COMPRESSED].freeze
    ALL = GROUPS.reduce(:merge).freeze

    # Fields of a request: pairs of name and value.
    def self.fields(request)
      request.except(:target, :method, :version).flat_map { |name, values| Array(values).map { |value| [name, value] } }
    end
  end
end
