# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require_relative "nginx"
require_relative "outcome"
require_relative "range_requests"

# Requests for ranges, answer by answer beside nginx with the same folder: where they differ, Fairlead has a reason.
class RangesBesideNginxTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include StaticFiles

  # nginx answers 416 to what it cannot read. RFC 9110 §14.2 has a server ignore such a field, as one that does not know it would.
  MALFORMED = "malformed: ignored, as RFC 9110 §14.2 has it"
  ANY_LENGTH = "RFC 9110 §14.1.1 has numbers of any length"
  LISTS = "RFC 9110 §5.6.1: a list may have empty elements, and spaces and tabs around its commas"
  GET_ONLY = "RFC 9110 §14.2: a range means something for GET only"

  DIFFERENCES = {}.freeze

  def test_each_difference_from_nginx_is_explained
    differing = outcomes.reject { |_, (ours, theirs)| ours == theirs }

    assert_equal DIFFERENCES.keys, differing.keys, differing.map { |name, (ours, theirs)| "#{name}: #{ours}, nginx: #{theirs}" }.join("\n")
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

  # The table in the documentation is written here: UPDATE_DOCS=1 writes it, any other run compares.
  def test_the_documentation_has_the_differences
    rows = DIFFERENCES.map do |name, why|
      ours, theirs = outcomes.fetch(name)
      "| #{name} | #{sent(name)} | #{theirs} | #{ours} | #{why} |\n"
    end
    table = "| request | its fields | nginx | Fairlead | why |\n|---|---|---|---|---|\n#{rows.join}"
    text = File.read(DOCUMENT)
    File.write(DOCUMENT, text.sub(BLOCK) { table }) if ENV["UPDATE_DOCS"]

    assert_equal table, File.read(DOCUMENT)[BLOCK]
  end

  private

  OUTCOMES = {} # rubocop:disable Style/MutableConstant
  private_constant :OUTCOMES

  # Name of a request => [Fairlead's Outcome, nginx's]; asked once for all tests.
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
    requests.transform_values { |request| [outcome(request) { connect(server) }, outcome(request) { adopt(nginx.client) }] }
  ensure
    nginx&.stop
  end

  # What this nginx knows how to answer.
  def requests
    Nginx.version < Gem::Version.new("1.23.4") ? RangeRequests::ALL.except(*RangeRequests::COMPRESSED.keys) : RangeRequests::ALL
  end

  # Asks on a connection of its own, which has nothing left when the answer has come.
  def outcome(request, &connect)
    method, target, version = { method: "GET", target: "/letters.txt", version: "1.1" }.merge(request).values_at(:method, :target, :version)
    client = connect.call
    client.write("#{method} #{target} HTTP/#{version}\r\nhost: localhost\r\nconnection: close\r\n#{fields(request, target, &connect)}\r\n")
    answer = client.answer(to: method)
    assert client.closed?, "there is more than #{answer.head}"
    Outcome.of(answer)
  ensure
    client&.close
  end

  # The lines of the request's fields, in which what the server says of the file stands for `%<etag>s` and `%<date>s`.
  def fields(request, target, &connect)
    known = connect.call.request("HEAD", target).answer(to: "HEAD")
    values = { etag: known["etag"], date: known["last-modified"] }
    RangeRequests.fields(request).map { |name, value| "#{name}: #{value.include?("%<") ? format(value, values) : value}\r\n" }.join
  end

  # The file that the request is for, as it was asked for.
  def content(name, outcome)
    path = RangeRequests::ALL.fetch(name).fetch(:target, "/letters.txt").delete_prefix("/")
    path = "index.html" if path.empty?
    RangeRequests::FILES[outcome.coding ? "#{path}.gz" : path]&.b
  end

  def sent(name)
    RangeRequests.fields(RangeRequests::ALL.fetch(name)).map { |field, value| "`#{field}: #{value}`" }.join(" ")
  end
end
