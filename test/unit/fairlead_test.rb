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

  private

  # Returns everything that the script prints.
  def ruby(script)
    Open3.capture2e({ "RUBYLIB" => nil }, RbConfig.ruby, "-w", "-I", File.join(ROOT, "lib"), "-e", script).first
  end
end
