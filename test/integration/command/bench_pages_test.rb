# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require_relative "../../../bench/harness"

# A mix of pages with a form (bench/harness/drive/pages.rb), requested by the real load tool.
class BenchPagesTest < Minitest::Test
  include Fairlead::Test::Servers

  Page = Bench::Drive::Pages::Page

  APP = <<~'RUBY'
    FORM = '<form><input name="authenticity_token" value="a+b/c="></form>'
    run(lambda do |env|
      request = Rack::Request.new(env)
      good = case [request.request_method, request.path]
             when %w[POST /notes] then request.cookies["session"] == "7" && request.POST == { "authenticity_token" => "a+b/c=", "note" => { "title" => "x" } }
             else true
             end
      File.open("asked", "a") { |file| file.puts("#{request.request_method} #{request.path}") }
      [good ? 200 : 422, { "content-type" => "text/html", "set-cookie" => "session=7; path=/" }, [FORM]]
    end)
  RUBY

  def setup
    pages = [page(1, "page", "/a"), page(1, "page", "/b"), page(1, "page", "/notes", verb: "POST", fields: { "note[title]" => "x" })]
    @drive = Bench::Drive::Pages.new(mixes: { "some" => pages, "all" => [*pages, page(1, "report", "/report")] }, form: "/new")
    @server = serve("require 'rack'\n#{APP}", "-t", 2)
  end

  def test_all_pages_have_figures_together_and_reports_beside_them
    found = @drive.measure(target("all"), 1)

    assert_nil @drive.problem(found)
    assert_in_delta 3, found.requests.fdiv(found.beside.requests), 1
    assert_operator found.percentile(99), :>, 0
    assert_equal ["GET /a", "GET /b", "GET /new", "GET /report", "POST /notes"], asked
  end

  def test_a_mix_without_reports_has_nothing_beside
    found = @drive.measure(target("some"), 0.2)

    assert_nil found.beside
    refute_includes asked, "GET /report"
  end

  # The application refuses the form.
  def test_a_refused_request_is_a_problem
    drive = Bench::Drive::Pages.new(mixes: { "some" => [page(1, "page", "/notes", verb: "POST", fields: {})] }, form: "/new")

    assert_match(/some requests failed.*status/, drive.problem(drive.measure(target("some"), 0.2)))
  end

  private

  def page(weight, name, path, verb: "GET", **more)
    Page.new(weight: weight, name: name, verb: verb, path: path, **more)
  end

  def target(mix)
    running = Struct.new(:address, :site) { def url(path) = "#{address}#{path}" }.new(@server.url.delete_suffix("/"), site)
    Bench::Drive::Target.new(Bench::Load::Fairlead.new, running, Bench::Shape.parse("1x2:4 #{mix}"), nil, "/")
  end

  def site
    server = @server
    Module.new.tap { |site| site.define_singleton_method(:write) { |name, text| server.write(name, text) && server.path(name) } }
  end

  def asked
    File.readlines(@server.path("asked"), chomp: true).uniq.sort
  end
end
