# frozen_string_literal: true

require "test_helper"
require "net/http"
require "open3"

# The gem, as a user gets it: built from this checkout, installed into an empty gem home (where RubyGems compiles the
# extension), and run from a folder that knows nothing of the checkout.
class GemTest < Minitest::Test
  include Fairlead::Test::Servers

  ABI = RbConfig::CONFIG.values_at("ruby_version", "arch").join("-")
  TARGET = File.join(File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target"), ROOT), "ruby-#{ABI}")
  HOME = File.join(TARGET, "gem-home")
  PACKAGE = File.join(TARGET, "fairlead.gem")

  # A user's environment: no checkout, no Bundler. Cargo ≥ 1.91 keeps what it has compiled for the next run, an older one
  # compiles everything again. That folder is not the checkout's own: Cargo takes crates of the same name and version at the
  # same place of a workspace for the same ones, and would believe that the checkout's are built.
  ENVIRONMENT = {
    "GEM_HOME" => HOME, "RUBYLIB" => nil, "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil, "CARGO_TARGET_DIR" => nil,
    "CARGO_BUILD_BUILD_DIR" => File.join(TARGET, "gem-build"),
    "CARGO_PROFILE_RELEASE_OPT_LEVEL" => "0", "CARGO_PROFILE_RELEASE_LTO" => "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS" => "16", "CARGO_PROFILE_RELEASE_DEBUG" => "0"
  }.freeze

  def test_the_gem_installs_and_serves
    FileUtils.rm_rf(HOME)
    run!("gem", "build", "fairlead.gemspec", "--output", PACKAGE, chdir: ROOT)
    run!("gem", "install", "--local", "--no-document", PACKAGE)

    Dir.mktmpdir("fairlead-gem-") do |folder|
      assert_equal "fairlead #{Fairlead::VERSION}", run!(command, "--version", chdir: folder).strip
      File.write(File.join(folder, "config.ru"), "run ->(_env) { [200, {}, ['from the gem']] }")
      assert_equal "from the gem", answer(folder)
      assert_match(/\AUsage: fairlead bench URL/, run!(command, "bench", "--help", chdir: folder))
    end
  end

  private

  def command
    File.join(HOME, "bin", "fairlead")
  end

  def run!(*command, **options)
    output, status = Open3.capture2e(ENVIRONMENT, *command, **options)
    assert_predicate status, :success?, "#{command.join(" ")}\n#{output}"
    output
  end

  # Starts the installed command, asks it once and ends it.
  def answer(folder)
    log = File.join(folder, "log")
    pid = Process.spawn(ENVIRONMENT, command, "-b", "tcp://127.0.0.1:0", chdir: folder, out: log, err: log)
    url = wait_until("the installed server to listen", seconds: 20) { File.read(log)[/listening on (\S+)/, 1] }
    Net::HTTP.get(URI(url))
  ensure
    Process.kill(:TERM, pid)
    assert_predicate Process.wait2(pid).last, :success?, File.read(log)
  end
end
