# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require_relative "nginx"
require_relative "outcome"
require_relative "range_requests"

# Range requests to Fairlead and to nginx with the same folder: each difference has a documented reason.
class RangesBesideNginxTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include StaticFiles

  # Reasons for a difference from nginx, each with its requests.
  REASONS = {
    "malformed: RFC 9110 §14.2 lets a server ignore or reject it; ignored, it is no range" => [
      "an end before the start", "an end before a start behind the end", "a range and one that ends before it starts",
      "a range and no range", "no range and a range", "an unsatisfiable range and no range", "empty elements only",
      "a space before the hyphen", "a space behind the hyphen", "a space in a suffix", "a space in a number", "two equals signs",
      "a hyphen only", "a number only", "two hyphens", "two hyphens before a suffix", "a third number", "letters",
      "a letter as the end", "a plus sign", "hexadecimal numbers", "fractions", "a parameter", "bytes beyond ASCII", "quotes"
    ],
    "malformed: RFC 9110 §5.3 lets only lists come in several fields" => ["two fields"],
    "RFC 9110 §14.1.1: a number has any length" => ["an end of 2⁶³", "an end of 2⁶⁴", "an end of 30 digits", "the last 2⁶⁴"],
    "RFC 9110 §5.6.1: elements of a list may be empty, and spaces and tabs may be around the commas" => [
      "spaces and tabs around commas", "an empty element", "an empty element first", "an empty element last"
    ],
    "RFC 9112 §5: tabs around a value are no part of it" => ["space around the value"],
    "RFC 9110 §5.6.7: GMT is the only zone there is" => ["If-Range with another zone"],
    "RFC 9110 §13.1.3: not modified since then; nginx asks for the very date" => ["If-Modified-Since a later date"],
    "RFC 9110 §13.1.4: beside If-Match it is to be ignored" => ["If-Unmodified-Since an earlier date, If-Match with the etag"],
    "RFC 9110 §14.2: a range means something for GET only" => [
      "HEAD of a range", "HEAD of two ranges", "HEAD of what is not there", "HEAD of a malformed range"
    ],
    "RFC 9110 §14.2 lets a server ignore many small ranges, which attackers ask for; here more than 100" => ["101 ranges", "800 ranges"]
  }.freeze

  DIFFERENCES = REASONS.flat_map { |why, names| names.map { |name| [name, why] } }.to_h.freeze

  def test_each_difference_from_nginx_is_explained
    differing = outcomes.reject { |_, (ours, theirs)| ours == theirs }

    assert_equal DIFFERENCES.keys.sort, differing.keys.sort, differing.map { |name, (ours, theirs)| "#{name}: #{ours}, nginx: #{theirs}" }.join("\n")
  end

  def test_whatever_is_sent_is_what_it_claims_to_be
    outcomes.each do |name, (ours, theirs)|
      [ours, theirs].each { |outcome| assert outcome.true_to?(content(name, outcome)), "#{name}: #{outcome.inspect}" }
    end
  end

  def test_enough_is_asked
    assert_operator outcomes.size, :>=, 148
    assert_equal RangeRequests::GROUPS.sum(&:size), RangeRequests::ALL.size, "two requests have one name"
    assert_equal [200, 206, 301, 304, 404, 412, 416], outcomes.flat_map { |_, pair| pair.map(&:status) }.uniq.sort
  end

  DOCUMENT = File.join(ROOT, "docs/conformance.md")
  BLOCK = %r{(?<=<!-- conformance:ranges -->\n).*?(?=<!-- /conformance -->)}m

  # UPDATE_DOCS=1 writes the table in the documentation; any other run compares it.
  def test_the_documentation_has_the_differences
    alike = DIFFERENCES.keys.group_by { |name| [DIFFERENCES.fetch(name), *outcomes.fetch(name).map(&:to_s)] }
    rows = alike.map { |(why, ours, theirs), names| "| #{names.map { |name| sent(name) }.join("<br>")} | #{theirs} | #{ours} | #{why} |\n" }
    table = "| request | nginx | Fairlead | why |\n|---|---|---|---|\n#{rows.join}"
    text = File.read(DOCUMENT)
    File.write(DOCUMENT, text.sub(BLOCK) { table }) if ENV["UPDATE_DOCS"]

    assert_equal table, File.read(DOCUMENT)[BLOCK]
  end

  private

  OUTCOMES = {} # rubocop:disable Style/MutableConstant
  private_constant :OUTCOMES

  # Name of a request => [Fairlead's Outcome, nginx's]; requested once for all tests.
  def outcomes
    skip "nginx is not installed" unless Nginx.program

    OUTCOMES.replace(compare) if OUTCOMES.empty?
    OUTCOMES
  end

  def compare
    server = launch(nil, "--public", "public") do |new|
      RangeRequests.create(new.path("public"))
      new.start
    end
    nginx = Nginx.new(server.path("public"))
    requests.transform_values { |request| [outcome(request) { connect(server) }, outcome(request) { nginx.client }] }
  ensure
    nginx&.stop
  end

  # Requests that this version of nginx supports.
  def requests
    Nginx.version < Gem::Version.new("1.23.4") ? RangeRequests::ALL.except(*RangeRequests::COMPRESSED.keys) : RangeRequests::ALL
  end

  # Sends the request on a new connection, which must have nothing left behind the response.
  def outcome(request, &connect)
    method, target, version = { method: "GET", target: "/letters.txt", version: "1.1" }.merge(request).values_at(:method, :target, :version)
    client = connect.call
    client.write("#{method} #{target} HTTP/#{version}\r\nhost: localhost\r\nconnection: close\r\n#{fields(request, target, &connect)}\r\n")
    answer = client.answer(to: method)
    assert client.closed?, "the server sent bytes behind #{answer.head}"
    Outcome.of(answer)
  ensure
    client&.close
  end

  # Lines of the request's fields. `%<etag>s` and `%<date>s` stand for the server's own values for the file.
  def fields(request, target, &connect)
    client = connect.call
    known = client.request("HEAD", target).answer(to: "HEAD")
    values = { etag: known["etag"], date: known["last-modified"] }
    RangeRequests.fields(request).map { |name, value| "#{name}: #{value.include?("%<") ? format(value, values) : value}\r\n" }.join
  ensure
    client&.close
  end

  # The requested file, in the requested encoding.
  def content(name, outcome)
    path = RangeRequests::ALL.fetch(name).fetch(:target, "/letters.txt").delete_prefix("/")
    path = "index.html" if path.empty?
    RangeRequests::FILES[outcome.coding ? "#{path}.gz" : path]&.b
  end

  # A request in a few words, for the documentation.
  def sent(name)
    request = RangeRequests::ALL.fetch(name)
    fields = RangeRequests.fields(request).map do |field, value|
      value = value.size > 40 ? "#{value[0, 30]}…" : value.gsub("\t", "\\t")
      "`#{field}: #{value.sub("%<etag>s", "ETAG")}`"
    end
    [*request[:method], *fields].join(" ")
  end
end
