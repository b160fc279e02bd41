# frozen_string_literal: true

require "test_helper"
require "fairlead/compat/public_folder"

class PublicFolderTest < Minitest::Test
  include Fairlead::Test::Folders

  FILES = {
    "www/page.txt" => "page", "www/index.html" => "home", "www/sub/index.html" => "sub", "www/.env" => "secret",
    "www/.git/config" => "secret", "www/.well-known/key" => "key", "secret" => "secret"
  }.freeze

  def test_a_file_of_the_folder_is_the_answer
    { "/page.txt" => "page", "/" => "home", "/sub/" => "sub", "/.well-known/key" => "key" }.each do |path, text|
      assert_equal [200, text], answer(path), path
    end
    assert_equal 200, answer("/page.txt", "HEAD").first
  end

  def test_everything_else_is_for_the_application
    %w[/missing /sub /.env /.git/config /%2eenv /../secret /%2e%2e/secret /a/../../secret].each do |path|
      assert_equal [200, "app"], answer(path), path
    end
    %w[POST PUT DELETE OPTIONS].each { |method| assert_equal [200, "app"], answer("/page.txt", method), method }
    assert_equal [200, "app"], answer("/", "GET", "rack.upgrade?" => :websocket)
  end

  def test_the_application_sees_its_path_as_it_was
    seen = nil
    in_folder("www/page.txt" => "page") do
      folder = Fairlead::Compat::PublicFolder.new(->(env) { seen = env["PATH_INFO"] }, "www")
      folder.call(env("/"))
    end

    assert_equal "/", seen
  end

  private

  def answer(path, method = "GET", more = {})
    in_folder(FILES) do
      folder = Fairlead::Compat::PublicFolder.new(->(_) { [200, {}, ["app"]] }, "www")
      status, _, body = folder.call(env(path, method).merge(more))
      text = +""
      body.each { |part| text << part }
      [status, text]
    end
  end

  def env(path, method = "GET") = { "REQUEST_METHOD" => method, "PATH_INFO" => path }
end
