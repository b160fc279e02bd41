# frozen_string_literal: true

require "test_helper"
require_relative "support/browsing"

# A browser understands the field server-timing.
class ServerTimingPageTest < Minitest::Test
  include Fairlead::Test::Browsing

  APP = <<~'RUBY'
    run lambda { |_env|
      sleep 0.02
      [200, { "content-type" => "text/html", "server-timing" => "db;dur=1.5;desc=\"two, queries\"" }, ["<p>page"]]
    }
  RUBY

  SCRIPT = <<~JS
    performance.getEntriesByType("navigation")[0].serverTiming.map(entry => [entry.name, entry.duration, entry.description])
  JS

  def test_a_page_sees_the_times_of_its_request
    page = browse("http://127.0.0.1:#{serve(APP, "--server-timing").port}/")
    entries = page.evaluate(SCRIPT)
    names = RUBY_VERSION >= "3.2" ? %w[queue lock app db] : %w[queue app db]

    assert_equal names, entries.map(&:first)
    assert_operator entries.to_h { |name, duration| [name, duration] }.values_at("app", "lock").compact.sum, :>=, 20
    assert_equal ["db", 1.5, "two, queries"], entries.last
  end
end
