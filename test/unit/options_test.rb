# frozen_string_literal: true

require "test_helper"

# Rules for every entry of the table.
class OptionsTest < Minitest::Test
  include Fairlead::Test::Folders

  Options = Fairlead::Options

  Options.each do |entry|
    define_method(:"test_#{entry.name}_is_described_in_whole_sentences") do
      assert_match(/\A[A-Z].*\.\z/m, entry.doc)
      assert_operator entry.summary.length, :<=, 200
    end

    define_method(:"test_#{entry.name}_takes_its_valid_example") do
      refute_empty entry.expand(*entry.valid)
    end

    define_method(:"test_#{entry.name}_refuses_its_invalid_example") do
      assert_raises(Options::Types::Invalid) { resolved(entry.expand(*entry.invalid)) }
    end

    define_method(:"test_#{entry.name}_is_left_alone_by_nil") do
      assert_empty entry.expand(nil)
    end

    define_method(:"test_#{entry.name}_takes_no_three_values") do
      assert_raises(Options::Types::Invalid) { entry.expand(1, 2, 3) }
    end

    define_method(:"test_#{entry.name}_can_be_given_by_each_of_its_flags") do
      expected = entry.expand(*entry.valid)
      [*entry.short, *entry.long_flags.map { |name| "--#{name}" }, *entry.foreign_flags].each do |flag|
        layer = Fairlead::Configuration::Flags.parse(arguments_for(entry, flag))

        assert_empty layer.problems
        assert_equal entry.boolean? ? { entry.name => true } : expected, layer.settings.transform_values(&:value)
      end
    end

    next unless entry.flag?

    define_method(:"test_#{entry.name}_stands_in_the_help") do
      assert_match(/--(\[no-\])?#{entry.long_flags.first}\b/, Fairlead::Configuration::Flags.new.help)
    end
  end

  Options.settings.each do |option|
    define_method(:"test_the_default_of_#{option.name}_is_one_of_its_values") do
      value = Fairlead::Configuration.from_options({})[option.name]
      Array(value).each { |element| assert_equal element, option.type.parse(element) }
    end

    define_method(:"test_#{option.name}_reaches_the_report") do
      options = option.in_file? ? { option.name => option.valid.first } : {}
      configuration = Fairlead::Configuration.from_options(options)
      line = Fairlead::Configuration::Report.new(configuration).to_s[/^#{option.name} .*$/]

      assert_includes line, option.format(configuration[option.name])
      assert_includes line, option.in_file? ? "Fairlead::Server" : "default"
    end
  end

  def test_no_flag_variable_or_method_is_given_twice
    entries = Options.to_a
    flags = entries.flat_map { |entry| [*entry.short, *entry.long_flags, *entry.foreign_flags] }
    [entries.flat_map(&:variables), entries.flat_map(&:methods_in_file), flags]
      .each { |names| assert_equal names.uniq, names }
  end

  def test_an_option_is_found_by_its_name_and_its_aliases
    assert_equal :pid_file, Options[:pid_file].name
    assert_equal :pid_file, Options[:pidfile].name
    assert_nil Options[:pid]
    assert_raises(KeyError) { Options.fetch(:pid) }
  end

  def test_threads_takes_one_number_two_numbers_or_a_range
    assert_equal({ min_threads: 3, max_threads: 3 }, Options[:threads].expand("3"))
    assert_equal({ min_threads: 1, max_threads: 4 }, Options[:threads].expand("1", 4))
    assert_equal({ min_threads: 0, max_threads: 16 }, Options[:threads].expand("0:16"))
    assert_equal({ min_threads: 0, max_threads: 5 }, Options[:threads].expand(":5"))
    [":", "5:", "5:6:7", "a:b"].each { |text| assert_raises(Options::Types::Invalid, text) { Options[:threads].expand(text) } }
  end

  def test_a_scheme_that_is_not_named_changes_nothing
    assert_empty Options[:rack_url_scheme].expand
    assert_raises(Options::Types::Invalid) { Options[:hsts].expand }
  end

  def test_the_directory_of_workers_is_that_of_the_server
    assert_equal :directory, Options[:worker_directory].name
  end

  def test_threads_of_which_one_is_not_set_sets_the_other
    assert_equal({ max_threads: 8 }, Options[:threads].expand(nil, "8"))
  end

  def test_shutdown_debug_is_understood_as_puma_has_it
    expected = { [] => :always, [true] => :always, [false] => :never, [true, { on_force: true }] => :forced, [{ on_force: true }] => :forced,
                 [false, { on_force: true }] => :never, [true, { on_force: false }] => :always }

    expected.each { |arguments, value| assert_equal({ shutdown_backtraces: value }, Options[:shutdown_debug].expand(*arguments), arguments.inspect) }
  end

  def test_port_takes_a_host
    assert_equal({ bind: ["tcp://127.0.0.1:3000"] }, Options[:port].expand(3000, "127.0.0.1"))
    assert_equal({ bind: ["tcp://[::1]:3000"] }, Options[:port].expand("3000", "::1"))
  end

  def test_temporary_files_go_where_the_environment_says_if_there_is_such_a_folder
    in_folder("folder/a" => "") do |folder|
      assert_equal "#{folder}/folder", temp_dir_with("folder")
      [nil, "", "missing", "folder/a"].each { |text| assert_equal Etc.systmpdir, temp_dir_with(text) }
    end
  end

  private

  # Resolves values like the configuration, once it knows the folder of relative paths.
  def resolved(values) = values.to_h { |name, value| [name, Options.fetch(name).resolve(value) { Dir.pwd }] }

  # An optional value must be joined with its flag.
  def arguments_for(entry, flag)
    return [flag] if entry.boolean?
    return [flag, entry.valid.first.to_s] unless entry.placeholder.start_with?("=")

    ["#{flag}#{"=" if flag.start_with?("--")}#{entry.valid.first}"]
  end

  def temp_dir_with(text)
    before = ENV.fetch("TMPDIR", nil)
    ENV["TMPDIR"] = text
    Options.fetch(:temp_dir).default({ directory: Dir.pwd })
  ensure
    ENV["TMPDIR"] = before
  end
end
