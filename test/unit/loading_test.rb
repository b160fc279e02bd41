# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "support/path_calls"

# Loading the library must not slow down other code: it leaves `require` unchanged and normalises no path of a required file.
# RubyGems has its own `require`, with calls of its own.
class LoadingTest < Minitest::Test
  LIB = Fairlead::Test::PathCalls::LIB
  COUNTER = Fairlead::Test::PathCalls::COUNTER
  REQUIRES = "[Kernel, Kernel.singleton_class].flat_map { |owner| %i[require require_relative load].map { |name| owner.instance_method(name) } }"

  def test_every_part_is_loaded_without_normalising_a_path
    output = ruby(<<~RUBY)
      #{COUNTER}
      require "fairlead"
      Fairlead.constants.each { |name| Fairlead.const_get(name) }
      puts $LOADED_FEATURES.count { |path| path.start_with?(#{LIB.inspect}) }, PathCalls::SEEN
    RUBY

    loaded, *calls = output.lines(chomp: true)
    assert_operator Integer(loaded), :>, 20
    assert_empty calls
  end

  # `require_relative` names the real file, and the constant the file of the load path: with links, these are two.
  def test_a_file_has_an_autoload_or_is_required_relatively
    files = Dir[File.join(LIB, "**/*.rb")]
    autoloads = files.flat_map { |file| File.read(file).scan(%r{autoload[ (]:\w+, "(fairlead/[\w/]+)"}).flatten }
    relative = files.flat_map do |file|
      File.read(file).scan(/^ *require_relative "(.+)"/).flatten.map { |path| File.join(File.dirname(file), path) }
    end

    assert_operator [autoloads.size, relative.size].min, :>, 20
    assert_empty relative.map { |path| File.absolute_path(path).delete_prefix(LIB).delete_prefix("/") } & autoloads
  end

  def test_the_counter_sees_what_it_should
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "loaded.rb"), "File.expand_path('x')\nrequire 'pathname'\nPathname('.').realpath\n")
      counter = COUNTER.sub(LIB.inspect, "#{File.realpath(folder)}/".inspect)
      lines = ruby("#{counter}\nload #{File.join(File.realpath(folder), "loaded.rb").inspect}\nputs PathCalls::SEEN").lines(chomp: true)

      assert_equal([1, 3], lines.map { |line| Integer(line[/\d+\z/]) }.uniq)
    end
  end

  def test_require_stays_as_it_is
    output = ruby(<<~RUBY)
      before = #{REQUIRES}
      require "fairlead"
      Fairlead.constants.each { |name| Fairlead.const_get(name) }
      after = #{REQUIRES}
      puts before.zip(after).all? { |was, is| was == is && was.source_location == is.source_location }
    RUBY

    assert_equal "true\n", output
  end

  def test_every_part_is_there_without_what_only_some_servers_need
    output = ruby(<<~RUBY)
      before = $LOADED_FEATURES.dup
      require "fairlead"
      Fairlead.constants.each { |name| Fairlead.const_get(name) }
      Fairlead::Configuration.from_options({})
      puts ($LOADED_FEATURES - before).grep(%r{/(?:fairlead/cli|(?<!fairlead/)rack|(?<!fairlead/)rack/.*|uri|fileutils|optparse)\\.rb\\z})
    RUBY

    assert_equal ["#{LIB}fairlead/cli.rb"], output.lines(chomp: true)
  end

  private

  # Returns everything that the script prints.
  def ruby(script)
    Open3.capture2e({ "RUBYLIB" => nil }, RbConfig.ruby, "-w", "-I", LIB, "-e", script).first
  end
end
