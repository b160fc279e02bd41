# frozen_string_literal: true

require "test_helper"
require_relative "websocket/autobahn"
require_relative "websocket/table"

# Autobahn's cases against a server that echoes. The daily run leaves out further sizes and speeds of the included cases;
# AUTOBAHN=all runs everything, which takes a quarter of an hour.
class WebsocketTest < Minitest::Test
  include Fairlead::Test::Servers

  APP = <<~'RUBY'
    require "rack/lint"
    use Rack::Lint

    module Echo
      def self.on_message(client, data) = client.write(data)
    end

    run lambda { |env|
      env["rack.upgrade"] = Echo if env["rack.upgrade?"] == :websocket
      [200, { "content-type" => "text/plain" }, ["a WebSocket would be echoed"]]
    }
  RUBY

  # The largest message has 16 MiB, and a client may send a thousand messages before it reads the first one.
  LIMITS = %w[--message-max-bytes 20m --client-pending-bytes 64m].freeze

  ALL = ENV["AUTOBAHN"] == "all"
  CASES =
    if ALL
      { "message" => %w[*], "context" => %w[12.* 13.*] }
    else
      { "message" => %w[1.* 2.* 3.* 4.* 5.* 6.* 7.* 9.1.1 9.2.1 10.* 12.*.3 13.*.3], "context" => %w[12.*.3 13.*.3] }
    end.freeze
  COUNTS = (ALL ? { "message" => 517, "context" => 216 } : { "message" => 261, "context" => 12 }).freeze
  SECONDS = ALL ? 3600 : 150

  # Groups that the daily run covers completely.
  WHOLE = [1, 2, 3, 4, 5, 6, 7, 10].freeze

  # Recommendations of the RFC that the server does not follow, with the reason: "6.4.1" => "…".
  NON_STRICT = {}.freeze

  CASES.each_key do |deflate|
    define_method("test_the_echo_withstands_every_case_with_compression_by_#{deflate}") do
      results = results(deflate)

      assert_equal COUNTS.fetch(deflate), results.size
      assert_empty results.select(&:failed?).join("\n")
    end

    define_method("test_each_case_that_is_not_strict_by_#{deflate}_has_its_reason") do
      lax = results(deflate).select(&:non_strict?)

      assert_equal NON_STRICT.keys & results(deflate).map(&:id), lax.map(&:id), lax.join("\n")
    end
  end

  # The table in the documentation covers all cases. With UPDATE_DOCS=1 a full run writes it; a partial run can only compare.
  def test_the_documentation_has_these_figures
    table = Autobahn::Table.new(CASES.to_h { |deflate, _| [deflate, results(deflate)] })
    table.document if ALL && ENV["UPDATE_DOCS"]
    return assert_equal table.to_s, Autobahn::Table.documented if ALL

    rows = table.rows.select { |row| WHOLE.include?(Integer(row[/\d+/], 10)) }

    assert_equal WHOLE.size, rows.size
    assert_empty(rows.reject { |row| Autobahn::Table.documented.include?(row) })
  end

  private

  RESULTS = {} # rubocop:disable Style/MutableConstant
  private_constant :RESULTS

  # Results with this kind of compression; run once for all tests.
  def results(deflate)
    skip Autobahn.unavailable if Autobahn.unavailable

    RESULTS[deflate] ||= begin
      server = serve(APP, "--deflate", deflate, *LIMITS)
      Autobahn.try("ws://127.0.0.1:#{server.port}", CASES.fetch(deflate), seconds: SECONDS)
    end
  end
end
