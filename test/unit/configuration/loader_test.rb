# frozen_string_literal: true

require "test_helper"

class ConfigurationLoaderTest < Minitest::Test
  include Fairlead::Test::Folders

  FILES = { "config/fairlead.rb" => "tag 'general'", "config/fairlead/production.rb" => "tag 'production'", "mine.rb" => "tag 'mine'" }.freeze

  def test_the_file_of_the_environment_comes_before_the_general_one
    in_folder(FILES) do
      assert_equal "general", tag
      assert_equal "production", tag("-e", "production")
      assert_equal "production", tag(environment: { "RACK_ENV" => "production" })
      assert_equal "general", tag("-e", "test", environment: { "RACK_ENV" => "production" })
    end
  end

  def test_a_file_that_is_named_is_the_only_one
    in_folder(FILES) { assert_equal "mine", tag("-C", "mine.rb") }
  end

  def test_of_several_files_the_later_wins
    in_folder("a.rb" => "tag 'a'\nworkers 1", "b.rb" => "tag 'b'\nbacklog 2") do
      configuration = load("-C", "a.rb", "-C", "b.rb")

      assert_equal ["b", 1, 2], [configuration.tag, configuration.workers, configuration.backlog]
      assert_equal ["b.rb:1", "a.rb:2"], [configuration.origin(:tag), configuration.origin(:workers)]
    end
  end

  def test_a_file_for_puma_is_read_where_there_is_none_for_fairlead
    files = { "config/puma.rb" => "tag 'puma'", "config/puma/production.rb" => "tag 'puma production'" }
    in_folder(files) { assert_equal ["puma", "puma production"], [tag, tag("-e", "production")] }
    in_folder(files.merge(FILES)) { assert_equal %w[general production], [tag, tag("-e", "production")] }
    in_folder(files.merge("config/fairlead.rb" => "tag 'general'")) { assert_equal "general", tag("-e", "production") }
  end

  def test_no_file_may_be_read
    in_folder(FILES) { |folder| assert_equal File.basename(folder), tag("-C", "-") }
  end

  def test_the_files_of_the_folder_to_run_in_are_found
    in_folder(FILES) do |folder|
      Dir.chdir("/") { assert_equal "general", tag("--dir", folder) }
    end
  end

  def test_folders_that_the_file_names_are_seen_from_the_folder_to_run_in
    in_folder("app/config/fairlead.rb" => "public_dir 'www'", "app/www/a" => "", "mine.rb" => "temp_dir 'www'") do |folder|
      assert_equal "#{folder}/app/www", load("--dir", "app").public_dir
      assert_equal "#{folder}/app/www", load("--dir", "app", "-C", "mine.rb").temp_dir
      assert_equal folder, Dir.pwd
    end
  end

  def test_what_a_caller_fills_in_comes_last
    in_folder("config/fairlead.rb" => "workers 3") do
      fallback = Fairlead::Configuration::Layer.from({ workers: 9, backlog: 7, environment: "test" }, origin: "the caller")
      configuration = load(fallback: fallback)

      assert_equal [3, 7, "test"], [configuration.workers, configuration.backlog, configuration.environment]
      assert_equal "the caller", configuration.origin(:backlog)
    end
  end

  private

  def tag(*arguments, **options) = load(*arguments, **options).tag

  def load(*arguments, environment: {}, **options)
    Fairlead::Configuration.load(Fairlead::Configuration::Flags.parse(arguments), environment: environment, **options)
  end
end
