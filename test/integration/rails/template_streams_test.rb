# frozen_string_literal: true

require "test_helper"
require "support/http2_commands"
require "support/rails_servers"
require_relative "../../conformance/interoperability/proxies"

# `render stream: true`: the layout is sent while the template is rendered. Rails up to 7.2 itself chunks such a body.
class RailsTemplateStreamsTest < Minitest::Test
  include Fairlead::Test::RailsServers
  include Fairlead::Test::Http2Commands

  SECONDS = Fairlead::Test::RailsServers::SECONDS

  FILES = {
    "app/controllers/pages_controller.rb" => <<~RUBY,
      class PagesController < ApplicationController
        layout "page"

        def show = render(:show, stream: true)

        # As if Rails did not check the version.
        def always
          request.set_header("HTTP_VERSION", "HTTP/1.1")
          render(:show, stream: true)
        end

        def broken = render(:broken, stream: true)
      end
    RUBY
    "app/views/layouts/page.html.erb" => "<h1><%= request.get_header('HTTP_VERSION') %></h1><%= yield %><p>end</p>",
    "app/views/pages/show.html.erb" => "<% 300.times do |number| %><i><%= number %></i><% end %>",
    "app/views/pages/broken.html.erb" => "<% raise 'on purpose' %>",
    "config/initializers/pages.rb" => <<~RUBY
      Rails.application.routes.append { get "pages/:action", controller: "pages" }
      Rails.application.config.action_view.annotate_rendered_view_with_filenames = false
      # ETag of Rack 3.1 calls to_ary of Rails 7.2's stream, which cannot return an Array.
      Rails.application.config.middleware.delete(Rack::ETag)
    RUBY
  }.freeze
  ITEMS = (0..299).map { |number| "<i>#{number}</i>" }.join

  def after_teardown
    @proxy&.stop
    super
  end

  def test_the_page_is_whole_by_every_protocol
    server = fairlead(files: FILES)
    %w[/pages/show /pages/always].each do |path|
      assert_page "1.1", get(server, path).body, path
      assert_page path.end_with?("show") ? "2" : "1.1", curl(server, path).body, path
      old = connect(server).write("GET #{path} HTTP/1.0\r\nhost: localhost\r\n\r\n").answer
      assert_page path.end_with?("show") ? "1.0" : "1.1", old.body, path
      assert_empty ask(server, "HEAD", path).body
    end
    assert_equal "chunked", get(server, "/pages/show")["transfer-encoding"]
    refute_includes server.stderr, "chunk"
  end

  def test_the_page_is_whole_behind_nginx_as_it_is_by_default
    server = fairlead(files: FILES)
    skip "nginx is not installed" unless Proxy.program("nginx")
    @proxy = Proxy.new(:plain_nginx, server.port)

    assert_page "1.0", @proxy.curl("/pages/show").first
    assert_page "1.1", @proxy.curl("/pages/always").first
  end

  # Rails sends its error page, or a script that leads to it; the chunks are complete.
  def test_an_error_in_the_template_ends_the_page_as_rails_does
    server = fairlead(files: FILES)

    [get(server, "/pages/broken"), curl(server, "/pages/broken")].each do |answer|
      assert_match(%r{(?:window\.location = "/500\.html"|on purpose).*</html>\s*\z}m, answer.body)
    end
  end

  private

  def assert_page(version, body, message = nil)
    assert_equal "<h1>HTTP/#{version}</h1>#{ITEMS}<p>end</p>", body.delete("\n"), message
  end
end
