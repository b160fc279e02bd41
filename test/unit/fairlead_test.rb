# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

class FairleadTest < Minitest::Test
  def test_requiring_it_loads_next_to_nothing
    loaded = ruby(<<~RUBY).lines(chomp: true)
      before = $LOADED_FEATURES.dup
      require "fairlead"
      puts $LOADED_FEATURES - before
    RUBY

    assert_equal %w[lib/fairlead/clock.rb lib/fairlead.rb].map { |path| File.join(ROOT, path) }, loaded
  end

  def test_everything_it_names_can_be_loaded_by_itself_without_a_warning
    names = File.read(File.join(ROOT, "lib/fairlead.rb")).scan(/autoload :(\w+)/).flatten - ["Native"]

    assert_operator names.size, :>, 20
    names.each { |name| assert_equal "", ruby("require 'fairlead'; Fairlead::#{name}.itself"), name }
  end

  def test_without_the_extension_the_message_says_what_to_do
    Dir.mktmpdir do |folder|
      FileUtils.cp_r(File.join(ROOT, "lib/."), folder)
      FileUtils.rm_f(Dir.glob(File.join(folder, "fairlead/fairlead.{so,bundle}")))
      File.write(File.join(folder, "config.ru"), "run ->(_) { [200, {}, []] }")
      output, status = Open3.capture2e({ "RUBYLIB" => nil }, RbConfig.ruby, "-w", "-I", folder, "-r", "fairlead", "-e",
                                       "exit Fairlead::CLI.start(%w[-q -C - -b tcp://127.0.0.1:0])", chdir: folder)

      assert_equal 1, status.exitstatus
      assert_match(/\Afairlead: the native extension is not built for this Ruby \(.*\): run bin\/setup .*\n\z/, output)
    end
  end

  def test_a_gem_for_one_platform_loads_the_extension_for_this_ruby
    in_platform_gem(RUBY_VERSION[/\A\d+\.\d+/]) do |folder|
      script = "require 'fairlead/native'; puts $LOADED_FEATURES.grep(/fairlead\\.(?:so|bundle)\\z/)"

      assert_equal "#{Dir.glob("#{folder}/fairlead/*/fairlead.{so,bundle}").first}\n", ruby(script, folder)
    end
  end

  def test_a_gem_for_one_platform_names_the_gem_that_compiles_for_a_ruby_that_it_does_not_know
    in_platform_gem("2.6") do |folder|
      output = ruby("begin; require 'fairlead/native'; rescue Fairlead::ExtensionError => e; puts e.message; end", folder)

      assert_match(/not built for this Ruby \(.*\): this gem has extensions for Ruby 2\.6; /, output)
      assert_match(/`gem install fairlead --platform ruby`; in a bundle, .*\n\z/, output)
    end
  end

  def test_a_gem_for_one_platform_whose_extension_does_not_load_names_the_gem_that_compiles
    in_platform_gem(RUBY_VERSION[/\A\d+\.\d+/]) do |folder|
      File.write(Dir.glob("#{folder}/fairlead/*/fairlead.{so,bundle}").first, "not an extension")
      output = ruby("begin; require 'fairlead/native'; rescue Fairlead::ExtensionError => e; puts e.message; end", folder)

      assert_match(/cannot be loaded: .*: .*`gem install fairlead --platform ruby`; in a bundle, .*\n\z/, output)
    end
  end

  private

  # A copy of lib with the extension in the folder of a Ruby.
  def in_platform_gem(version)
    Dir.mktmpdir do |folder|
      FileUtils.cp_r(File.join(ROOT, "lib/."), folder)
      extension = Dir.glob(File.join(folder, "fairlead/fairlead.{so,bundle}")).first
      FileUtils.mkdir_p(File.join(folder, "fairlead", version))
      FileUtils.mv(extension, File.join(folder, "fairlead", version))
      yield folder
    end
  end

  # Returns everything that the script prints.
  def ruby(script, library = File.join(ROOT, "lib"))
    Open3.capture2e({ "RUBYLIB" => nil }, RbConfig.ruby, "-w", "-I", library, "-e", script).first
  end
end
