# frozen_string_literal: true

require "test_helper"
require "securerandom"
require "support/rails_servers"

# An application from `rails new` with a generated scaffold and an unchanged config/puma.rb: with `rails server`, with
# `fairlead`, and in workers that are forked from the loaded application.
class RailsApplicationTest < Minitest::Test
  include Fairlead::Test::RailsServers

  PICTURE = Random.new(1).bytes(300_000).freeze

  # Ways to start it.
  STARTS = {
    "rails_server" => ->(test, *flags) { test.rails_server(*flags) },
    "fairlead" => ->(test, *flags) { test.fairlead(*flags) },
    "preloaded_workers" => ->(test, *flags) { test.fairlead("-w", 2, "--preload", *flags, environment: test.production) }
  }.freeze

  STARTS.each do |name, start|
    define_method(:"test_a_form_with_its_token_is_taken_and_no_other_by_#{name}") { assert_forms_work(start.call(self)) }
    define_method(:"test_a_file_goes_up_and_comes_down_in_ranges_by_#{name}") { assert_files_work(start.call(self)) }
    define_method(:"test_streams_and_early_hints_are_sent_at_once_by_#{name}") { assert_streams_work(start.call(self, "--early-hints")) }
  end

  # Nobody has created the production database here. The path of the other one differs between versions of Rails.
  def production
    database = Fairlead::Test::RailsApplication.files.keys.grep(/development\.sqlite3\z/).first
    { "RAILS_ENV" => "production", "DATABASE_URL" => "sqlite3:#{database}" }
  end

  private

  def assert_forms_work(server)
    visit(server)
    assert_includes see("/stylesheets/application.css").body, "font-family"
    shown = create("title" => "blue <note>")

    assert_equal 200, shown.status
    assert_includes shown.body, "blue &lt;note&gt;"
    assert_includes see("/").body, "blue &lt;note&gt;"
    @token = "forged"
    refused = post("/notes", "note[title]" => "forged")
    refute_equal 302, refused.status
    refute_includes see("/notes").body, "forged"
  end

  def assert_files_work(server)
    visit(server)
    shown = create("title" => "with a picture", "picture" => PICTURE)
    address = path(see(shown.body[%r{href="(?:https?://[^/"]+)?(/rails/active_storage/[^"]+)}, 1])["location"])
    part = see(address, "range" => "bytes=100000-199999")

    assert_equal PICTURE, see(address).body
    assert_equal [206, "bytes 100000-199999/300000", PICTURE[100_000, 100_000]], [part.status, part["content-range"], part.body]
  end

  def assert_streams_work(server)
    visit(server)
    client = connect(server).request("GET", "/hints", headers)
    hinted = client.answer

    assert_equal [103, "</application.css>; rel=preload; as=style"], [hinted.status, hinted["link"]]
    assert_equal "hinted", client.answer.body
    assert_events_come_at_once(server)
  end

  # Each event is sent only after the client has seen the previous one.
  def assert_events_come_at_once(server)
    client = connect(server).request("GET", "/live", headers)
    assert_match(/^transfer-encoding: chunked\r$/, client.read_through("\r\n\r\n"))
    3.times do |number|
      assert_includes client.read_through("\n\n"), %(data: {"number":#{number}})
      server.write("tmp/seen#{number}", "")
    end
    assert_equal "\r\n0\r\n\r\n", client.read_through("0\r\n\r\n")
  end

  # A user with a browser that keeps cookies.
  def visit(server)
    @server = server
    @cookie = @token = nil
    form = see("/notes/new")
    @token = form.body[/name="authenticity_token" value="([^"]+)"/, 1]
    assert_equal 200, form.status
  end

  # Page after the form.
  def create(fields)
    answer = post("/notes", fields.transform_keys { |name| "note[#{name}]" })
    assert_equal 302, answer.status, answer.body
    see(path(answer["location"]))
  end

  def path(location) = location[%r{\Ahttps?://[^/]+(/.*)}, 1]

  def see(path, fields = {}) = remember(get(@server, path, headers.merge(fields)))

  def post(path, fields)
    boundary = SecureRandom.hex
    parts = { "authenticity_token" => @token, **fields }.map { |name, value| part(name, value) }
    body = parts.map { |part| "--#{boundary}\r\n#{part}\r\n".b }.join + "--#{boundary}--\r\n"
    remember(ask(@server, "POST", path, headers.merge("content-type" => "multipart/form-data; boundary=#{boundary}"), body))
  end

  def part(name, value)
    file = "; filename=\"blue.png\"\r\ncontent-type: image/png" if name.end_with?("[picture]")
    "content-disposition: form-data; name=\"#{name}\"#{file}\r\n\r\n#{value}".b
  end

  # In production Rails requires TLS, which a proxy would announce.
  def headers = { "x-forwarded-proto" => "https", "cookie" => @cookie, "origin" => nil }.compact

  def remember(answer)
    cookie = answer.all("set-cookie").filter_map { |field| field[/\A_shop_session=[^;]+/] }.last
    @cookie = cookie || @cookie
    answer
  end
end
