# frozen_string_literal: true

require "test_helper"

# Each test has its own process, in which nothing is loaded yet.
class EagerLoadTest < Minitest::Test
  OWN = '$LOADED_FEATURES.grep(/fairlead.*\.rb\z/)'

  # A mistake in one of them would look like a part for another library, which is not there.
  def test_every_part_is_loaded_but_those_of_the_start_and_for_other_uses
    lists = "Fairlead::EagerLoad::OF_START, Fairlead::EagerLoad::ON_DEMAND"
    assert_equal "[]", ruby("p Fairlead::EagerLoad.run - [#{lists}].flatten")
  end

  # RubyGems looks for a gem each time.
  def test_own_files_do_not_pass_rubygems
    count = <<~RUBY
      asked = 0
      Kernel.module_eval do
        original = instance_method(:require)
        define_method(:require) { |path| asked += 1 if path == "fairlead/process/worker"; original.bind_call(self, path) }
      end
      Fairlead::EagerLoad.run
      p asked, Fairlead.autoload?(:Worker)
    RUBY
    assert_equal "0\nnil", ruby(count)
  end

  def test_no_file_is_loaded_twice_through_a_link
    Dir.mktmpdir do |folder|
      File.symlink(File.join(ROOT, "lib"), link = File.join(folder, "lib"))
      Dir.mkdir(links = File.join(folder, "links"))
      Dir.each_child(link) { |name| File.symlink(File.join(ROOT, "lib", name), File.join(links, name)) }
      twice = "files = #{OWN}.map { |file| File.realpath(file) }; p files.size > 60, files - files.uniq, files.tally.values.max"
      [link, links].each { |path| assert_equal "true\n[]\n1", ruby("Fairlead::EagerLoad.run; #{twice}", path), path }
    end
  end

  def test_parts_of_plugins_are_loaded_too
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "of_plugin.rb"), "module Fairlead; module OfPlugin; end; end")
      program = "$LOAD_PATH << #{folder.inspect}; Fairlead.autoload(:OfPlugin, 'of_plugin'); left = Fairlead::EagerLoad.run; "
      assert_equal "nil\nfalse", ruby("#{program}p Fairlead.autoload?(:OfPlugin), left.include?('OfPlugin')")
    end
  end

  def test_collections_stay_as_they_were
    assert_equal "false", ruby("Fairlead::EagerLoad.run; p GC.disable")
    assert_equal "true", ruby("GC.disable; Fairlead::EagerLoad.run; p GC.disable")
  end

  private

  def ruby(program, library = File.join(ROOT, "lib"))
    IO.popen([RbConfig.ruby, "-I", library, "-rfairlead", "-e", program], err: %i[child out], &:read).chomp
  end
end
