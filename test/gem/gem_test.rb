# frozen_string_literal: true

require "test_helper"
require "support/installed_gem"

# The installed gem as a command, alone and in a bundle.
class GemTest < Minitest::Test
  include Fairlead::Test::InstalledGem

  def test_the_gem_installs_and_serves
    Dir.mktmpdir("fairlead-gem-") do |folder|
      assert_equal "fairlead #{Fairlead::VERSION}", run!(COMMAND, "--version", chdir: folder).strip
      File.write(File.join(folder, "config.ru"), "run ->(_env) { [200, {}, ['from the gem']] }")
      assert_equal "from the gem", served(folder)
    end
  end

  SHEBANGS.each do |name, shebang|
    define_method(:"test_bundle_exec_of_a_program_with_the_first_line_#{name}_restarts_in_the_bundle") do
      arguments = ["-w", "2", "--state", "state", "--control-url", "auto"]
      assert_restarts(Installed.new("bundle", "exec", "fairlead", shebang: shebang, arguments: arguments))
    end
  end

  def test_a_single_process_that_bundle_exec_has_started_restarts_in_the_bundle
    server = begin_in_bundle(Installed.new("bundle", "exec", "fairlead"))
    { USR2: 2, USR1: 3 }.each { |signal, number| assert_signal_brings(signal, server, number) }

    pid, where = answer(server).split.drop(1)

    assert_equal "bundle", where
    assert_includes server.serving_pids, Integer(pid, 10) # a child of the started process
  end

  def test_the_program_of_bundler_restarts_in_the_bundle
    server = Installed.new("bin/fairlead", arguments: ["-w", "2", "--state", "state", "--control-url", "auto"])
    bundle!(server)
    run!("bundle", "binstubs", "fairlead", chdir: server.directory)

    assert_restarts(server)
  end

  def test_the_program_of_rubygems_restarts_without_a_bundle
    assert_restarts(Installed.new("fairlead", arguments: ["-w", "2", "--state", "state", "--control-url", "auto"]), where: "system")
  end

  def test_a_gemfile_of_another_name_stays_the_one
    server = Installed.new("bundle", "exec", "--gemfile", "Gemfile.next", "fairlead", arguments: ["-w", "1"])
    File.rename(server.path("Gemfile"), server.path("Gemfile.next"))
    server.write("Gemfile", "raise 'not this one'")
    begin_in_bundle(server, "BUNDLE_GEMFILE" => server.path("Gemfile.next"))
    assert_signal_brings(:USR1, server, 2)

    assert_equal "bundle", answer(server).split.last
  end

  private

  # Starts the installed command, sends one request and ends it.
  def served(folder)
    log = File.join(folder, "log")
    pid = Process.spawn(ENVIRONMENT, COMMAND, "-b", "tcp://127.0.0.1:0", chdir: folder, out: log, err: log)
    url = wait_until("the installed server to listen", seconds: 20) { File.read(log)[/listening on (\S+)/, 1] }
    Net::HTTP.get(URI(url))
  ensure
    Process.kill(:TERM, pid)
    assert_predicate Process.wait2(pid).last, :success?, File.read(log)
  end
end
