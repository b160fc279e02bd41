# frozen_string_literal: true

require "test_helper"

class AppLoaderTest < Minitest::Test
  include Fairlead::Test::Folders

  def test_the_application_is_what_the_file_runs
    app = load("run ->(env) { [200, {}, [env.fetch('x'), __FILE__]] }")

    assert_equal "y", app.call({ "x" => "y" }).last.first
  end

  def test_the_file_is_known_by_its_absolute_path
    in_folder("config.ru" => "require_relative 'app'\nrun App", "app.rb" => "App = ->(_) { __dir__ }") do |folder|
      assert_equal folder, Fairlead::AppLoader.load("config.ru").call({})
    end
  end

  {
    "an_exception" => ["\nraise 'no database'", 2, "no database (RuntimeError)"],
    "an_unknown_name" => ["\n\nrun Missing", 3, "uninitialized constant Missing (NameError)"],
    "an_unknown_method" => ["run missing()", 1, "undefined method `missing' (NoMethodError)"],
    "a_file_that_is_not_there" => ["require 'nowhere/at/all'", 1, "cannot load such file -- nowhere/at/all (LoadError)"],
    "an_exit" => ["\nexit 3", 2, "it called exit while loading"]
  }.each do |name, (text, line, reason)|
    define_method(:"test_#{name}_is_told_with_its_line") do
      error = assert_raises(Fairlead::AppLoadError) { load(text) }

      assert_equal ["config.ru", line, "config.ru:#{line}: #{reason}"], [error.path, error.line, error.message.sub(/'(?=missing)/, "`")]
      refute_nil error.cause
    end
  end

  def test_a_signal_is_no_fault_of_the_application_even_where_an_error_covers_it
    assert_raises(SignalException) { load("begin; raise SignalException, 'TERM'; ensure; raise 'CRITICAL'; end") }
  end

  def test_a_syntax_error_is_told_with_its_line
    error = assert_raises(Fairlead::AppLoadError) { load("run(\n\n") }

    assert_equal "config.ru", error.path
    assert_operator error.line, :>=, 1
  end

  def test_an_error_in_another_file_of_the_application_is_told_with_both_places
    in_folder("config.ru" => "\nrequire_relative 'app'\n", "app.rb" => "# here\nraise 'boo'") do
      error = assert_raises(Fairlead::AppLoadError) { Fairlead::AppLoader.load("config.ru") }

      assert_equal "app.rb:2: boo (RuntimeError) (loaded from config.ru:2)", error.message
    end
  end

  def test_a_file_without_an_application_is_an_error
    error = assert_raises(Fairlead::AppLoadError) { load("# nothing") }

    assert_equal "config.ru", error.path
    assert_includes error.message, "missing run"
  end

  def test_a_file_that_is_not_there_is_an_error
    in_folder do |folder|
      error = assert_raises(Fairlead::AppLoadError) { Fairlead::AppLoader.load("config.ru") }

      assert_equal "config.ru: no such file in #{folder}", error.message
    end
  end

  # arguments and files => true if only the folder is served
  {
    "no_rackup_file" => [%w[--public www], {}, true],
    "a_rackup_file" => [%w[--public www], { "config.ru" => "run 1" }, false],
    "a_rackup_file_that_is_named_and_missing" => [%w[--public www config.ru], {}, false],
    "no_folder" => [[], {}, false]
  }.each do |name, (arguments, files, alone)|
    define_method(:"test_with_#{name}_the_files_are#{"_not" unless alone}_alone") do
      in_folder("www/a" => "", **files) { assert_equal alone, Fairlead::AppLoader.files_only?(configuration(*arguments)) }
    end
  end

  def test_where_the_files_are_alone_everything_else_is_missing
    in_folder("www/a" => "") do
      assert_nil Fairlead::AppLoader.check(configuration("--public", "www"))
      assert_equal [404, {}, []], Fairlead::AppLoader.of(configuration("--public", "www")).call({})
    end
  end

  def test_an_application_that_is_there_or_named_has_to_be_loaded
    in_folder("www/a" => "", "config.ru" => "run ->(_) { [200, {}, ['app']] }") do
      assert_equal ["app"], Fairlead::AppLoader.of(configuration("--public", "www")).call({}).last
      %i[check of].each do |method|
        error = assert_raises(Fairlead::AppLoadError) { Fairlead::AppLoader.send(method, configuration("--public", "www", "app.ru")) }
        assert_match(/\Aapp\.ru: no such file/, error.message)
      end
    end
  end

  private

  def configuration(*arguments)
    Fairlead::Configuration.load(Fairlead::Configuration::Flags.parse(arguments), environment: {})
  end

  def load(text)
    in_folder("config.ru" => text) { Fairlead::AppLoader.load("config.ru") }
  end
end
