# frozen_string_literal: true

require "test_helper"
require "support/file_serving"

# Names that begin with a dot, and names of editors' backup files: they are hidden unless the configuration says otherwise.
class HiddenFilesTest < Minitest::Test
  include Fairlead::Test::FileServing

  HIDDEN = %w[.env .git/config .htaccess sub/.secret sub/.hidden/page.html page.html~ sub/backup~ .DS_Store ._page.html folder~/page.html
              .well-known.txt sub/.well-known/key .Well-Known/key .well-known/.secret .well-known/key~].freeze
  PUBLIC = %w[.well-known/acme-challenge/token .well-known/security.txt page.html a.b.c ~page.html mid~dle.txt].freeze

  def test_hidden_names_are_left_to_the_application
    client = connect(serving)

    HIDDEN.each do |name|
      ["/#{name}", "/#{name.gsub(".", "%2e")}", "/#{name.gsub("~", "%7e")}"].each { |path| assert_from_app client.get(path), path }
    end
    PUBLIC.each { |name| assert_file "content of #{name}", client.get("/#{name}"), name }
  end

  def test_a_hidden_index_is_hidden
    client = connect(serve_public({ ".folder/index.html" => "secret", "sub/.folder/index.html" => "secret" }))

    %w[/.folder /.folder/ /sub/.folder /sub/.folder/].each { |path| assert_from_app client.get(path), path }
  end

  def test_they_are_served_where_the_operator_wants_it
    client = connect(serving("--public-hidden"))

    (HIDDEN + PUBLIC).each { |name| assert_file "content of #{name}", client.get("/#{name}"), name }
    %w[/.. /../config.ru /.../x /..page].each { |path| assert_from_app client.get(path), path }
  end

  def test_nothing_is_said_about_whether_they_are_there
    client = connect(serving)
    there, missing = %w[/.env /.ens].map { |path| client.get(path) }

    assert_equal missing.fields.map(&:first), there.fields.map(&:first)
    assert_equal "GET /.env", there.body
  end

  private

  def serving(*arguments)
    serve_public((HIDDEN + PUBLIC).to_h { |name| [name, "content of #{name}"] }, *arguments)
  end
end
