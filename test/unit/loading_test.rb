# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "support/http_client"

# Loading the library taxes no one else's files: it leaves `require` as it is and normalises no path for a file that is
# required, neither while it is loaded nor while it serves. RubyGems has a `require` of its own, whose calls are its own.
class LoadingTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  LIB = File.join(ROOT, "lib/")

  # Counts the calls that code below lib makes of what looks at every segment of a path.
  COUNTER = <<~RUBY.freeze
    module PathCalls
      NAMES = %i[expand_path absolute_path realpath realdirpath].freeze
      SEEN = []
      TRACE = TracePoint.new(:c_call) do |call|
        SEEN << "\#{call.path}:\#{call.lineno}" if NAMES.include?(call.method_id) && call.path.start_with?(#{LIB.inspect})
      end
    end
    PathCalls::TRACE.enable
  RUBY

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

  def test_a_server_answers_without_what_its_application_does_not_need
    server = serve(<<~'RUBY')
      run ->(_env) { [200, {}, [$LOADED_FEATURES.grep(%r{/(?:rack/builder|rack/server|rack/utils|uri|fileutils)\.rb\z}).join("\n")]] }
    RUBY
    loaded = get(server).body.lines(chomp: true)

    assert_equal(["builder.rb"], loaded.map { |path| File.basename(path) })
  end

  # The same application, with one file and with fifty.
  def test_a_server_normalises_no_path_for_a_file_of_the_application
    one, fifty = [1, 50].map { |number| calls_of_a_server(number) }

    assert_operator one, :>, 0
    assert_equal one, fifty
  end

  private

  def calls_of_a_server(number)
    parts = Array.new(number) { |index| ["parts/part#{index}.rb", "module Part#{index}; end\n"] }.to_h
    server = serve(<<~RUBY, files: { **parts, "counter.rb" => COUNTER }, environment: { "RUBYOPT" => "-r./counter.rb" })
      Dir[File.join(__dir__, "parts/*.rb")].sort.each { |path| require path }
      run ->(_env) { [200, {}, [PathCalls::SEEN.size.to_s]] }
    RUBY
    Integer(get(server).body)
  end

  # Everything it prints.
  def ruby(script)
    Open3.capture2e({ "RUBYLIB" => nil }, RbConfig.ruby, "-w", "-I", LIB, "-e", script).first
  end
end
