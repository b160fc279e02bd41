# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

# Redirection changes the streams of a process, so most of this happens in a child process.
class RedirectionTest < Minitest::Test
  include Fairlead::Test::Folders

  MARK = /\A=== fairlead \S+ starts: .* ===\n/

  def test_both_streams_go_to_their_files_from_a_mark_on
    in_folder("out" => "old\n", "errors" => "old\n") do
      redirected({ redirect_stdout: "out", redirect_stderr: "errors" })

      assert_equal %W[out\n err\n], %w[out errors].map { |path| File.read(path).sub(MARK, "") }
    end
  end

  def test_what_the_files_contain_can_be_kept
    in_folder("out" => "old\n") do
      redirected({ redirect_stdout: "out", redirect_append: true })

      assert_match(/\Aold\n=== .* ===\nout\n\z/, File.read("out"))
    end
  end

  def test_one_file_for_both_is_emptied_once
    in_folder("all" => "old\n") do
      redirected({ redirect_stdout: "all", redirect_stderr: "all" })

      assert_match(/\A=== .* ===\n=== .* ===\nout\nerr\n\z/, File.read("all"))
    end
  end

  def test_a_file_of_a_server_that_runs_is_not_emptied
    in_folder("out" => "of the other server\n") do
      other = Fairlead::LogFile.new("out") # as in one of its processes after HUP
      redirected({ redirect_stdout: "out" })

      assert_match(/\Aof the other server\n=== .* ===\nout\n\z/, File.read("out"))
    ensure
      other&.close
    end
  end

  def test_a_process_that_has_inherited_the_file_leaves_it_as_it_is
    in_folder("out" => "of the parent\n") do
      redirected({ redirect_stdout: "out" }, out: [File.expand_path("out"), "a"])

      assert_equal "of the parent\nout\n", File.read("out")
    end
  end

  def test_a_folder_that_does_not_exist_is_a_problem_before_the_start
    in_folder do |folder|
      error = assert_raises(Fairlead::ConfigurationError) { configuration(redirect_stdout: "log/out", redirect_stderr: "errors") }

      assert_equal ["Fairlead::Server: redirect_stdout: there is no folder #{folder}/log"], error.problems.map(&:to_s)
    end
  end

  def test_paths_are_relative_to_the_folder_of_the_server
    in_folder("app/log/keep" => "") do |folder|
      assert_equal({ redirect_stdout: "#{folder}/app/log/out" },
                   Fairlead::Redirection.paths(configuration(redirect_stdout: "log/out", directory: "app")))
    end
  end

  def test_a_file_that_cannot_be_opened_is_a_problem_of_the_option
    in_folder("out/a" => "") do
      error = assert_raises(Fairlead::ConfigurationError) { Fairlead::Redirection.start(configuration(redirect_stdout: "out")) }

      assert_match(/\AFairlead::Server: redirect_stdout: Is a directory/, error.message)
    end
  end

  private

  def configuration(options) = Fairlead::Configuration.from_options(options)

  # Prints a word to each redirected stream of a child process.
  def redirected(options, **streams)
    script = "Fairlead::Redirection.start(Fairlead::Configuration.from_options(#{options})); puts 'out'; system('echo err >&2')"
    assert system(RbConfig.ruby, "-w", "-I", File.join(ROOT, "lib"), "-rfairlead", "-e", script, err: File::NULL, **streams)
  end
end
