# frozen_string_literal: true

require "test_helper"
require "open3"
require_relative "../../../rakelib/packaging/gem_check"
require_relative "../../../rakelib/packaging/platform_gem"

# The gems for one platform, with other files in the places of the native ones.
class PlatformGemTest < Minitest::Test
  # Gives files instead of building.
  class GivenBuild
    def initialize(platform, folder)
      @platform = platform
      @folder = folder
    end

    def server
      (Packaging::RUBIES.map { |ruby| "#{ruby}/#{@platform.extension}" } + Packaging::Build::SERVER_PROGRAMS).each { |name| write("server/#{name}") }
      File.join(@folder, "server")
    end

    def load_tool = write(Packaging::Build::LOAD_TOOL)

    private

    def write(name)
      path = File.join(@folder, name)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, "#!/bin/sh\necho \"load tool: $*\"\n")
      File.chmod(0o755, path)
      path
    end
  end

  GivenLicences = Struct.new(:packages, :target) do
    def text = "rustls 0.23.0: for #{packages.join(", ")} on #{target}"
  end

  def setup
    @folder = Dir.mktmpdir
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_the_servers_gem_has_an_extension_for_each_ruby_and_no_sources
    spec = specification(gem("x86_64-linux-gnu").server.first)
    native = spec.files.grep(%r{\Alib/fairlead/(?:\d|fairlead-)})

    assert_equal %w[3.1/fairlead.so 3.3/fairlead.so 3.4/fairlead.so fairlead-acme fairlead-supervisor],
                 native.map { |name| name.delete_prefix("lib/fairlead/") }.sort
    assert_empty spec.files.grep(%r{\A(?:crates|ext)/|Cargo})
    assert_includes spec.files, "LICENSE-THIRD-PARTY"
    assert_includes spec.files, "lib/fairlead/native.rb"
    assert_empty spec.extensions
    assert_equal %w[rack], spec.runtime_dependencies.map(&:name)
    assert_equal %w[fairlead fairlead-iodine], spec.executables
  end

  # RubyGems 3.3.15 is Debian 12's.
  def test_each_rubygems_takes_one_gem_for_a_c_library
    assert_equal({ "x86_64-linux-gnu" => %w[3.3.22 3.6.7 4.0.22], "x86_64-linux" => %w[3.3.15] }, takers("x86_64-linux-gnu"))
    assert_equal({ "aarch64-linux-musl" => %w[3.3.22 3.6.7 4.0.22] }, takers("aarch64-linux-musl"))
    assert_equal({ "arm64-darwin" => %w[3.3.15 3.3.22 3.6.7 4.0.22] }, takers("arm64-darwin"))
  end

  def test_both_gems_for_glibc_have_the_same_files
    contents = gem("x86_64-linux-gnu").server.map { |path| Gem::Package.new(path).spec.files }

    assert_equal(*contents)
  end

  def test_only_the_rubies_with_an_extension_take_it
    wanted = specification(gem("x86_64-linux-gnu").server.first).required_ruby_version

    %w[3.1.0 3.1.7 3.3.0 3.3.10 3.4.0 3.4.8].each { |version| assert wanted.satisfied_by?(Gem::Version.new(version)), version }
    %w[3.0.7 3.2.0 3.2.11 3.5.0.preview1 3.5.0 4.0.0].each { |version| refute wanted.satisfied_by?(Gem::Version.new(version)), version }
  end

  def test_rubies_without_a_gap_need_no_exceptions
    assert_equal Gem::Requirement.new(">= 3.3", "< 3.5.dev"), Packaging::PlatformGem.rubies(%w[3.3 3.4])
  end

  def test_two_gems_of_the_same_files_have_the_same_bytes
    first, again = Array.new(2) { gem("x86_64-linux-gnu").server.map { |path| File.binread(path) } }

    assert_equal first, again
  end

  def test_the_load_tools_gem_is_for_any_c_library_and_bench_finds_it
    path = gem("#{RUBY_PLATFORM[/\A\w+/]}-linux-gnu").load_tool.first

    assert_equal "fairlead-load-#{Fairlead::VERSION}-#{RUBY_PLATFORM[/\A\w+/]}-linux.gem", File.basename(path)
    environment = { "GEM_HOME" => File.join(@folder, "home"), "RUBYLIB" => nil, "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil }
    run!(environment, "gem", "install", "--local", "--no-document", path)

    assert_equal "load tool: --help\n", run!(environment, File.join(@folder, "home/bin/fairlead-load"), "--help")
    assert_equal "load tool: -c 1\n", run!(environment, *fairlead_without_programs, "bench", "-c", "1")
  end

  def test_the_load_tools_licences_are_those_of_the_c_library_in_it
    Gem::Package.new(gem("x86_64-linux-gnu").load_tool.first).extract_files(File.join(@folder, "extracted"))

    assert_match(/for fairlead-load on x86_64-unknown-linux-musl/, File.read(File.join(@folder, "extracted/LICENSE-THIRD-PARTY")))
  end

  def test_bench_finds_a_load_tool_that_is_not_in_the_bundle
    home = File.join(@folder, "home")
    system({ "GEM_HOME" => home }, "gem", "install", "--local", "--no-document", "--silent", gem("x86_64-linux-gnu").load_tool.first, exception: true)
    File.write(File.join(@folder, "Gemfile"), "")
    environment = { "GEM_HOME" => home, "PATH" => "#{home}/bin:#{ENV.fetch("PATH")}", "BUNDLE_GEMFILE" => File.join(@folder, "Gemfile"),
                    "RUBYLIB" => nil, "RUBYOPT" => "-rbundler/setup" }

    assert_equal "load tool: -c 1\n", run!(environment, *fairlead_without_programs, "bench", "-c", "1")
  end

  def test_without_the_load_tool_bench_says_how_to_install_it
    environment = { "GEM_HOME" => File.join(@folder, "home"), "RUBYLIB" => nil, "PATH" => "/usr/bin:/bin" }
    output, status = Open3.capture2e(environment, *fairlead_without_programs, "bench")

    refute_predicate status, :success?
    assert_match(/the load tool is not installed: run `gem install fairlead-load`/, output)
  end

  def test_a_check_finds_native_files_that_are_missing_and_sources
    gem("x86_64-linux-gnu").server
    platform = Packaging::Platform::ALL.fetch("x86_64-linux-gnu")
    right, = Packaging::GemCheck.of(platform, @folder)
    other = Packaging::GemCheck.new(right.path, platform, ["fairlead-supervisor"])

    assert_empty right.metadata_problems
    assert_match(%r{its native files are lib/fairlead/3\.1/fairlead\.so, }, other.metadata_problems.join)
  end

  private

  def gem(name)
    platform = Packaging::Platform::ALL.fetch(name)
    Packaging::PlatformGem.new(platform, packages: @folder, build: GivenBuild.new(platform, File.join(@folder, name)), licences: GivenLicences)
  end

  # The platforms of the server's gems, each with the versions of RubyGems that take it.
  def takers(name)
    gem(name).server.to_h do |path|
      wanted = specification(path).required_rubygems_version
      [File.basename(path)[/\d-(.+)\.gem/, 1], %w[3.3.15 3.3.22 3.6.7 4.0.22].select { |version| wanted.satisfied_by?(Gem::Version.new(version)) }]
    end
  end

  def specification(path) = Gem::Package.new(path).spec

  def run!(environment, *command)
    output, status = Open3.capture2e(environment, *command)
    assert_predicate status, :success?, output
    output
  end

  # The command, in a copy of lib that has no native files.
  def fairlead_without_programs
    FileUtils.cp_r(File.join(ROOT, "lib"), @folder)
    FileUtils.rm_f(Dir.glob(File.join(@folder, "lib/fairlead/fairlead{.so,.bundle,-*}")))
    [RbConfig.ruby, "-I", File.join(@folder, "lib"), File.join(ROOT, "exe/fairlead")]
  end
end
