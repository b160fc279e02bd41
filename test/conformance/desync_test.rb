# frozen_string_literal: true

require "test_helper"
require "io/wait"
require "socket"
require_relative "desync/cases"

# The request-smuggling cases of http_desync_guardian, each sent to a real server. Its tiers: Compliant with the RFCs;
# Acceptable and Ambiguous, which a proxy might pass on; Severe, which a server must refuse.
class DesyncTest < Minitest::Test
  include Fairlead::Test::Servers

  APP = <<~RUBY
    require "rack/lint"
    use Rack::Lint
    run lambda { |env|
      env["rack.input"]&.read
      [200, { "content-type" => "text/plain" }, ["answered"]]
    }
  RUBY

  STRICT_CODINGS = "RFC 9112 §6.1 allows more codings than chunked; it is the only one Fairlead decodes"

  # Compliant requests that the server refuses.
  REFUSED = {
    "Compliant URL" => [400, "it has a fragment, which RFC 9112 §3.2 has no place for"],
    "International in URI" => [400, "RFC 3986 §2: bytes beyond ASCII must be percent-encoded"],
    "Empty URI" => [400, "RFC 9112 §3.2: no form of request target is empty"],
    "Correct TE OK" => [501, STRICT_CODINGS],
    "Transfer-Encoding: identity and chunked OK" => [501, STRICT_CODINGS],
    "Different Transfer-Encoding headers combined" => [501, STRICT_CODINGS],
    "TE with custom parameters OK" => [400, "RFC 9112 §7.1: chunked has no parameters"],
    "Multiple transfer encoding headers in a single request OK" => [400, "several fields are how to hide one"],
    "Different Transfer-Encoding headers" => [400, "several fields are how to hide one"],
    "Transfer-Encoding with a param: chunked;custom_param" => [400, "several fields are how to hide one"]
  }.freeze

  FRAMED = "RFC 9110 §9.3.1 gives the body no meaning, but it is framed, and read before the next request"
  ANOTHER_FIELD = "neither field frames anything, nor shares the CGI name of one that does"

  # Ambiguous requests that the server accepts.
  ANSWERED = {
    "Get with a body and Content-Length" => FRAMED,
    "Get with a body and Transfer-Encoding" => FRAMED,
    "Head with a body and Content-Length" => FRAMED,
    "Head with a body and Transfer-Encoding" => FRAMED,
    "Has a CL in GET" => FRAMED,
    "Has a TE in GET" => FRAMED,
    "Transfer-Encoding with multiple hyphens" => ANOTHER_FIELD,
    "Transfer-Encoding with multiple delimiters" => ANOTHER_FIELD
  }.freeze

  def test_no_severe_case_is_answered
    answers = statuses("Severe")

    assert_operator answers.size, :>, 50
    assert_empty(answers.reject { |_, status| refusal?(status) })
  end

  def test_each_compliant_case_is_answered_or_its_refusal_explained
    answers = statuses("Compliant")
    refused = answers.reject { |_, status| status == 200 }

    assert_equal REFUSED.transform_values(&:first), refused.to_h
    assert_operator answers.size, :>, refused.size
  end

  def test_each_ambiguous_case_is_refused_or_its_answer_explained
    answers = statuses("Ambiguous")

    assert_equal ANSWERED.keys.sort, answers.reject { |_, status| refusal?(status) }.map(&:first).sort
  end

  def test_each_acceptable_case_gets_a_definite_answer
    answers = statuses("Acceptable")

    refute_empty answers
    assert_empty(answers.reject { |_, status| status == 200 || refusal?(status) })
  end

  DOCUMENT = File.join(ROOT, "docs/conformance.md")
  BLOCK = /(?<=<!-- conformance:desync -->\n).*?(?=<!-- \/conformance -->)/m

  # UPDATE_DOCS=1 writes the table in the documentation; any other run compares it.
  def test_the_documentation_has_these_figures
    rows = %w[Compliant Acceptable Ambiguous Severe].map do |tier|
      answers = statuses(tier)
      refused = answers.count { |_, status| refusal?(status) }
      "| #{tier} | #{answers.size} | #{answers.size - refused} | #{refused} |\n"
    end
    table = "| tier | cases | answered | refused |\n|---|--:|--:|--:|\n#{rows.join}"
    text = File.read(DOCUMENT)
    File.write(DOCUMENT, text.sub(BLOCK, table)) if ENV["UPDATE_DOCS"]

    assert_equal table, File.read(DOCUMENT)[BLOCK]
  end

  private

  # A client's mistake must not look like the application's: 500 is not a refusal.
  def refusal?(status)
    [400, 414, 417, 431, 501, 505].include?(status)
  end

  # Name of each case of a tier, which is not always unique, and the status of its response.
  def statuses(tier)
    server = serve(APP)
    Desync.cases.select { |one| one.tier == tier }.map { |one| [one.name, status(server.port, one.to_s)] }
  end

  # Status of the first response to +request+. After a refusal, the server must close the connection.
  def status(port, request)
    TCPSocket.open("127.0.0.1", port) do |socket|
      socket.write(request)
      answer = +""
      read_more(socket, answer) until answer.include?("\r\n")
      status = Integer(answer.split[1], 10)
      read_to_end(socket) if refusal?(status)
      status
    end
  rescue EOFError, SystemCallError => e
    e.class.name.to_sym
  end

  def read_more(socket, answer)
    socket.wait_readable(10) or raise Errno::ETIMEDOUT
    answer << socket.readpartial(1024)
  end

  def read_to_end(socket)
    loop { read_more(socket, +"") }
  rescue EOFError
    nil
  end
end
