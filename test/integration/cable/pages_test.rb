# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/action_cable"

# Pages that load and lose their connections while messages are broadcast; see support/cable/pages.mjs.
class CablePagesTest < Minitest::Test
  include Fairlead::Test::ActionCableServing

  PROGRAM = File.join(ROOT, "test/support/cable/pages.mjs")
  MODULES = { "NODE_PATH" => ["/usr/share/nodejs", *ENV["NODE_PATH"]].join(":") }.freeze
  ANYCABLE = File.join(ROOT, "test/browser/node_modules/@anycable/core/index.js")

  CODE = <<~'RUBY'
    class NewsChannel < ActionCable::Channel::Base
      def subscribed = stream_from("news")
    end

    class Connection
      def connect = self.name = "page"
    end
    ActionCable.server.config.disable_request_forgery_protection = true

    map("/publish") do
      run(lambda do |env|
        ActionCable.server.broadcast("news", { number: env["rack.input"].read.to_i })
        [204, {}, []]
      end)
    end
    map("/page") { run ->(_env) { [200, { "content-type" => "application/json" }, [JSON.generate(channel: "NewsChannel", since: Fairlead::Cable.position("news"))]] } }
  RUBY

  def setup
    super
    skip("ws is not installed for node") unless system(MODULES, "node", "-e", 'require("ws")', exception: false, %i[out err] => File::NULL)
  end

  def test_pages_of_the_client_of_anycable_miss_nothing
    skip("node_modules is missing; bin/setup --browser installs it") unless File.exist?(ANYCABLE)
    found = pages(client: "anycable", script: ANYCABLE)

    assert_equal [0, 0, 0, []], found.values_at("lost", "doubled", "misordered", "errors"), found.to_s
    assert_operator found["received"], :>, 100
    assert_operator found["dropped"], :<, found["received"] / 100
  end

  # A connection may break after a message has arrived and before the server knows it. Then the message comes again.
  def test_pages_of_the_client_of_rails_miss_nothing
    found = pages(client: "rails", script: rails_client)

    assert_equal [0, 0, 0, []], found.values_at("lost", "misordered", "stale", "errors"), found.to_s
    assert_operator found["received"], :>, 100
    assert_operator found["doubled"], :<, found["received"] / 100
  end

  private

  # Its name differs between versions.
  def rails_client
    folder = File.join(Gem::Specification.find_by_name("actioncable").gem_dir, "app/assets/javascripts")
    %w[actioncable.js action_cable.js].map { |name| File.join(folder, name) }.find { |path| File.exist?(path) }
  end

  def pages(**settings)
    server = cable("-w", 2, "-t", 3, "--history-messages", 1000, code: CODE)
    output, error, status = Open3.capture3(MODULES, "node", PROGRAM, JSON.generate(url: server.url, pages: 40, together: 20, **settings))
    assert_predicate status, :success?, error
    JSON.parse(output)
  end
end
