# frozen_string_literal: true

require "test_helper"
require "stringio"

class ServiceTest < Minitest::Test
  include Fairlead::Test::Folders

  PAGE = { "www/500.html" => "page" }.freeze

  def test_an_application_that_is_given_is_the_application
    app = ->(_) { [200, {}, []] }

    assert_same app, service(app: app).app
  end

  def test_without_any_application_there_are_the_files
    in_folder("www/a" => "") { assert_equal [404, {}, []], service(public_dir: "www").app.call({}) }
  end

  def test_the_engine_answers_an_exception_with_the_page_of_the_folder
    in_folder(PAGE) { assert_equal [500, {}, []], failure(public_dir: "www") }
  end

  def test_without_such_a_page_there_is_a_text
    in_folder("www/404.html" => "", "other/500.html" => "", "www/500.html/index.html" => "") do
      assert_includes failure(public_dir: "www").last.join, "500 Internal Server Error"
      assert_includes failure.last.join, "500 Internal Server Error"
    end
  end

  def test_a_page_that_is_too_large_is_none
    { 65_536 => true, 65_537 => false }.each do |size, page|
      in_folder("www/500.html" => "x" * size) { assert_equal page, failure(public_dir: "www").last.empty?, size }
    end
  end

  def test_in_development_there_is_the_exception
    in_folder(PAGE) { assert_includes failure(public_dir: "www", environment: "development").last.join, "boo" }
  end

  # public_symlinks => whether the link is the page; one from inside, one from outside, one to nowhere
  { none: [false, false, false], inside: [true, false, false], all: [true, true, false] }.each do |links, pages|
    define_method(:"test_with_links_#{links}_the_page_may_be_one") do
      %w[page.html ../page.html missing].zip(pages) do |target, page|
        in_folder("www/page.html" => "", "page.html" => "") do
          File.symlink(target, "www/500.html")

          assert_equal page, failure(public_dir: "www", public_symlinks: links).last.empty?, target
        end
      end
    end
  end

  private

  def service(app: nil, environment: "production", **options)
    configuration = Fairlead::Configuration.from_options({ bind: "tcp://127.0.0.1:0", environment: environment, **options })
    Fairlead::Service.new(configuration, log: Fairlead::EventLog.new(output: StringIO.new, errors: StringIO.new), app: app)
  end

  # What the engine is told to answer to an exception.
  def failure(**options)
    open = service(app: ->(_) {}, **options).open
    open.engine_settings.fetch(:app_error).call(RuntimeError.new("boo"), {})
  ensure
    open.close
  end
end
