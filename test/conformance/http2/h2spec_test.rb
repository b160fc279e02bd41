# frozen_string_literal: true

require "test_helper"
require "support/certificates"
require_relative "h2spec"

# h2spec in its strict mode against a server with one application, with and without TLS.
class H2specTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured

  # The body must be longer than the windows that some cases leave.
  APP = <<~RUBY
    require "rack/lint"
    use Rack::Lint
    run ->(_env) { [200, { "content-type" => "text/plain" }, ["some bytes of text"]] }
  RUBY

  CASES = 146

  # Cases that do not pass, with the reason.
  WITHOUT_TLS = {
    "http2/3.5 Sends invalid connection preface" =>
      "The port speaks HTTP/1.1 too, for which this is a malformed request: the connection gets a 400, and then its end. " \
      "The case expects a frame or the end, and takes \"HTTP/1.1 \" for the head of a frame."
  }.freeze
  OVER_TLS = {}.freeze

  def test_all_cases_but_those_listed_pass_without_tls
    assert_all_pass_but(WITHOUT_TLS) { H2spec.try(serve(APP).port, tls: false) }
  end

  def test_all_cases_but_those_listed_pass_over_tls
    assert_all_pass_but(OVER_TLS) { H2spec.try(serve_tls(APP).port, tls: true) }
  end

  private

  # A listed case that passes must be removed from the list.
  def assert_all_pass_but(listed)
    skip H2spec.unavailable if H2spec.unavailable

    results = yield
    failed = results.select(&:fault)

    assert_equal CASES, results.map(&:name).uniq.size
    assert_equal listed.keys, failed.map(&:name), failed.join("\n")
  end
end
