# frozen_string_literal: true

require "test_helper"
require "net/http"

# All relative paths begin at `directory`, in every source of options. Only -C and --dir begin at the current folder.
class RelativePathsTest < Minitest::Test
  include Fairlead::Test::Servers

  # The same names exist in both folders. The correct application sends the correct file.
  APP = 'run ->(_env) { [200, { "x-sendfile" => File.expand_path("private/page") }, []] }'
  HERE = { "public/page" => "wrong", "private/page" => "wrong", "spool/x" => "", "ca.pem" => "" }.freeze
  THERE = { "public/page" => "right", "private/page" => "right", "spool/x" => "", "config.ru" => APP }.freeze
  FILES = THERE.transform_keys { |path| "there/#{path}" }.merge(HERE).freeze

  OPTIONS = { public_dir: "public", temp_dir: "spool", sendfile_root: "private", pid_file: "pid", state_path: "state", access_log: "log",
              bind: "unix://socket", redirect_stderr: "errors" }.freeze

  SETTINGS = OPTIONS.map { |name, value| "#{name} #{value.inspect}\n" }.join

  def test_from_the_command_line
    assert_there serve_there("--dir", "there", *OPTIONS.flat_map { |name, value| [flag(name), value] })
  end

  def test_from_a_file_that_names_the_directory_last
    assert_there serve_there("-C", "settings.rb", files: { "settings.rb" => "#{SETTINGS}directory 'there'" })
  end

  def test_from_a_file_with_the_directory_on_the_command_line
    assert_there serve_there("-C", "settings.rb", "--dir", "there", files: { "settings.rb" => SETTINGS })
  end

  def test_a_folder_that_is_only_in_the_current_one_is_none
    server = own(Fairlead::Test::ServerProcess.new(nil, "--dir", "there", "--public", "www", files: { "there/config.ru" => APP, "www/x" => "" }))

    assert_equal 1, server.launch.wait_exit.exitstatus
    assert_equal "fairlead: --public: must be an existing folder, not \"www\"\n", server.stderr
  end

  def test_the_certificate_of_an_authority_of_acme_is_looked_for_there
    server = own(Fairlead::Test::ServerProcess.new(nil, "--dir", "there", "--check", "--acme", "a.example?terms_of_service_agreed=true&ca=ca.pem",
                                                   files: FILES))

    assert_equal 1, server.launch.wait_exit.exitstatus
    assert_equal "fairlead: --acme: has a ca that cannot be read: ca.pem\n", server.stderr
  end

  def test_a_server_in_a_program_has_them_at_its_current_folder
    Dir.mktmpdir do |folder|
      Dir.mkdir(File.join(folder, "public"))
      inside = Dir.chdir(folder) { Fairlead::Configuration.embedded(public_dir: "public") }

      assert_equal File.join(File.realpath(folder), "public"), inside.public_dir
    end
  end

  private

  def serve_there(*arguments, files: {})
    serve(nil, *arguments, "--log-config", bind: nil, files: FILES.merge(files))
  end

  def flag(name) = "--#{Fairlead::Options.fetch(name).long_flags.first}"

  def assert_there(server)
    assert_equal %w[right right], ["/page", "/private"].map { |path| get(server, path) }
    assert_equal %w[errors log pid private public socket spool state config.ru].sort, Dir.children(server.path("there")).sort
    assert_match(/^temp_dir +#{Regexp.escape(server.path("there/spool"))} /, server.stdout)
    assert_equal 0, server.stop.exitstatus
  end

  def get(server, path)
    UNIXSocket.open(server.path("there/socket")) do |socket|
      socket.write("GET #{path} HTTP/1.0\r\n\r\n")
      socket.read.split("\r\n\r\n", 2).last
    end
  end
end
