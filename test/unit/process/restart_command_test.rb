# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "support/processes"

class RestartCommandTest < Minitest::Test
  include Fairlead::Test::Waiting
  include Fairlead::Test::Processes

  # Notes the command in a child process with that folder and environment, and runs it again.
  PROGRAM = <<~'RUBY'
    require "fairlead"
    require "rbconfig"
    if ENV.delete("AGAIN")
      File.write("seen", [Dir.pwd, ENV["PWD"], ENV["BUNDLE_GEMFILE"].inspect, ENV["RUBYOPT"].inspect, ENV["CHANGED"].inspect, *ARGV].join("\n"))
    else
      Fairlead::RestartCommand.note
      ENV["CHANGED"] = "by the old code"
      Dir.chdir("/")
      Process.setproctitle("another title")
      $stdout.puts("noted")
      $stdout.flush
      STDIN.gets
      command = Fairlead::RestartCommand.current
      environment = command.environment.merge("PWD" => command.folder, "AGAIN" => "1")
      Process.wait(spawn(environment, *command.words_beside, chdir: command.folder, unsetenv_others: true))
    end
  RUBY

  def setup
    @folder = File.realpath(Dir.mktmpdir)
    %w[one two].each { |name| Dir.mkdir("#{@folder}/#{name}") }
    File.symlink("#{@folder}/one", "#{@folder}/current")
    %w[one two].each { |name| File.write("#{@folder}/#{name}/program.rb", PROGRAM) }
  end

  def teardown = FileUtils.rm_rf(@folder)

  def test_a_symbolic_link_is_followed_anew
    assert_equal ["#{@folder}/two", "#{@folder}/current"], run_again({}).first(2)
  end

  def test_the_arguments_and_the_environment_are_those_of_the_start
    seen = run_again({}, "-w", "a b")

    assert_equal ["nil", "-w", "a b"], seen.last(3)
  end

  def test_nothing_of_bundler_stays
    bundler = {
      "BUNDLE_GEMFILE" => "#{@folder}/one/Gemfile", "BUNDLER_ORIG_BUNDLE_GEMFILE" => "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL",
      "RUBYOPT" => "-W1", "BUNDLER_ORIG_RUBYOPT" => "-W0"
    }

    assert_equal ["nil", '"-W0"'], run_again(bundler)[2, 2]
  end

  def test_the_gemfile_of_the_old_release_is_left_out_and_another_one_is_kept
    assert_equal "nil", run_again({ "BUNDLE_GEMFILE" => "#{@folder}/one/Gemfile" })[2]
    assert_equal '"/etc/Gemfile"', run_again({ "BUNDLE_GEMFILE" => "/etc/Gemfile" })[2]
  end

  # Rails would write the other process's id into the file, and remove it.
  def test_beside_this_process_a_program_gets_another_pid_file
    rails = "#{@folder}/rails server --restart"

    both = arguments(rails, of: rails)

    assert_equal both.uniq, both.grep(/\Aserver --restart -P server\.pid\.spawner\d+\z/)
    assert_equal 2, both.size
    assert_equal %w[server server], arguments("#{@folder}/rails server", of: rails)
  end

  # Without its arguments, Ruby would run standard input.
  def test_the_command_of_a_program_that_has_given_itself_a_title_is_unknown
    program = "$0 = 'title'; p Fairlead::RestartCommand.note.words"
    library = File.expand_path("../../../lib", __dir__)

    assert_equal "[]", IO.popen([RbConfig.ruby, "-I", library, "-r", "fairlead", "-e", program], &:read).strip
  end

  def test_new_code_beside_a_daemon_does_not_leave_the_terminal
    command = Fairlead::RestartCommand.new(%w[ruby rackup -D -s fairlead], @folder, ENV.to_h)
    command.foreign(daemon: true)

    assert_equal %w[ruby rackup -s fairlead], command.words
  end

  private

  # Returns the arguments of two programs that start beside this one.
  def arguments(words, of:)
    FileUtils.rm_f("#{@folder}/said")
    File.write("#{@folder}/rails", "#!/bin/sh\necho \"$@\" >>said\n", perm: 0o755)
    command = Fairlead::RestartCommand.new(["ruby"], @folder, ENV.to_h)
    command.foreign(pid_file: "server.pid", command: of)
    command.words = words
    2.times { Process.wait(spawn(*command.words_beside, chdir: @folder)) }
    File.readlines("#{@folder}/said", chomp: true)
  end

  # Makes another folder the current one while the program runs.
  def run_again(environment, *arguments)
    point_to("one")
    FileUtils.rm_f("#{@folder}/two/seen")
    environment = { "PWD" => "#{@folder}/current", "RUBYLIB" => File.expand_path("../../../lib", __dir__), "RUBYOPT" => nil }.merge(environment)
    IO.popen([environment, RbConfig.ruby, "program.rb", *arguments], "r+", chdir: "#{@folder}/current") do |program|
      program.gets
      point_to("two")
      program.puts
      program.close_write
      program.read
    end
    File.readlines("#{@folder}/two/seen", chomp: true)
  end

  def point_to(name)
    File.symlink("#{@folder}/#{name}", "#{@folder}/next")
    File.rename("#{@folder}/next", "#{@folder}/current")
  end
end
