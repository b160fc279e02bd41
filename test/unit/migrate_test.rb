# frozen_string_literal: true

require "test_helper"
require "stringio"

# The command `fairlead migrate`; test/unit/configuration/migration_test.rb tests the rewriting.
class MigrateTest < Minitest::Test
  include Fairlead::Test::Folders

  FILES = { "config/puma.rb" => "preload_app!\n", "config/puma/production.rb" => "workers 2\n" }.freeze
  TEXT = "# Made from config/puma.rb by `fairlead migrate`.\n\npreload\n"

  def test_the_file_for_fairlead_is_written_beside_the_one_for_puma
    in_folder(FILES) do
      assert_equal [0, <<~TEXT, ""], migrate
        config/fairlead.rb takes the place of config/puma.rb; `fairlead --check` shows what it means
        config/puma/production.rb is not read any more; run fairlead migrate config/puma/production.rb
      TEXT
      assert_equal [TEXT, FILES["config/puma.rb"]], [File.read("config/fairlead.rb"), File.read("config/puma.rb")]
    end
  end

  def test_a_file_of_an_environment_gets_a_file_of_that_environment
    in_folder(FILES) do
      assert_equal "config/fairlead/production.rb", migrate("config/puma/production.rb")[1][/\A\S+/]
      assert_match(/^workers 2$/, File.read("config/fairlead/production.rb"))
      refute_includes migrate[1], "not read any more"
    end
  end

  def test_a_file_that_exists_is_only_replaced_by_force
    in_folder(FILES.merge("config/fairlead.rb" => "mine")) do
      assert_equal [1, "", "fairlead: config/fairlead.rb: there is such a file; replace it with --force\n"], migrate
      assert_equal "mine", File.read("config/fairlead.rb")
      assert_equal 0, migrate("--force").first
      assert_equal TEXT, File.read("config/fairlead.rb")
    end
  end

  def test_the_text_can_be_printed_instead
    in_folder(FILES) do
      [%w[--stdout], %w[-], %w[config/puma.rb -]].each { |arguments| assert_equal [0, TEXT, ""], migrate(*arguments) }
      refute_path_exists "config/fairlead.rb"
    end
  end

  def test_what_cannot_be_done_is_said
    in_folder do
      assert_equal [1, "", "fairlead: config/puma.rb: cannot be read (ENOENT)\n"], migrate
      assert_equal [1, "", "fairlead: --what: unknown option; see fairlead migrate --help\n"], migrate("--what")
      assert_equal [1, "", "fairlead: b.rb: unexpected argument; see fairlead migrate --help\n"], migrate("a.rb", "b.rb")
    end
    assert_match(/\AUsage: fairlead migrate/, migrate("--help")[1])
  end

  def test_a_method_that_nobody_knows_is_named
    in_folder("config/puma.rb" => "threads 1\nworkerz 3\nbefore_fork { connect }\n") do
      status, text, errors = migrate("-")

      assert_equal 0, status
      assert_includes text, "workerz 3"
      assert_equal "warning: config/puma.rb:2: workerz is unknown to Puma and Fairlead, and stays as it is; did you mean workers?\n", errors
    end
  end

  def test_a_file_of_another_name_is_written_as_the_default_one
    in_folder("config" => "") { |folder| assert_equal [1, "", "fairlead: config/fairlead.rb: cannot be written (EEXIST)\n"], odd(folder) }
    in_folder { |folder| assert_equal 0, odd(folder).first }
  end

  private

  def odd(folder)
    File.write(File.join(folder, "server.rb"), "workers 1")
    migrate("server.rb")
  end

  def migrate(*arguments)
    output = StringIO.new
    errors = StringIO.new
    [Fairlead::CLI.start(["migrate", *arguments], output: output, errors: errors), output.string, errors.string]
  end
end
