# frozen_string_literal: true

require "test_helper"
require "support/certificates"
require "support/restarts"

# Paths that lead to pipes and devices, which may never end or never begin, and other odd files that must not make a start
# hang or fail.
class OddFilesTest < Minitest::Test
  include Fairlead::Test::Secured
  include Fairlead::Test::Restarts
  include Fairlead::Test::Servers

  APP = "run ->(_env) { [200, {}, ['ok']] }"

  { "cert.pem" => {}, "key.pem" => {}, "clients.pem" => { ca: "clients.pem", verify_mode: "peer" },
    "crl.pem" => { ca: "ca.pem", verify_mode: "peer", crl: "crl.pem" } }.each do |name, query|
    define_method("test_a_named_pipe_as_#{name.tr(".", "_")}_is_refused") do
      server = launch_tls(APP, query: query, &:itself)
      FileUtils.rm_f(server.path(name))
      File.mkfifo(server.path(name))

      assert_equal 1, server.launch.wait_exit.exitstatus
      assert_match(/#{name}: is no regular file \(fifo\)$/, server.stderr)
    end
  end

  def test_a_configuration_that_never_ends_is_refused
    server = own(Fairlead::Test::ServerProcess.new(APP, "-C", "/dev/zero"))

    assert_equal 1, server.launch.wait_exit.exitstatus
    assert_equal "fairlead: /dev/zero: has more than 16 MiB, which is too much for a configuration; check its path\n", server.stderr
  end

  def test_a_configuration_may_come_out_of_a_pipe
    server = own(Fairlead::Test::ServerProcess.new(APP, "-C", "pipe"))
    File.mkfifo(server.path("pipe"))
    writer = Thread.new { File.write(server.path("pipe"), "#{"#" * 100_000}\nworkers 1\n") }

    assert_match(/cluster mode/, server.start.stdout)
  ensure
    writer&.kill
  end

  # Ruby raises ThreadError.
  def test_a_start_without_room_for_a_thread_says_what_to_do
    code = <<~RUBY
      Thread.singleton_class.prepend(Module.new { def new(...) = raise(ThreadError, "can't create Thread: Resource temporarily unavailable") })
    RUBY
    [0, 1].each do |workers|
      server = own(Fairlead::Test::ServerProcess.new(APP, "-C", "full.rb", "-w", workers, files: { "full.rb" => code }))

      assert_equal 1, server.launch.wait_exit.exitstatus
      assert_match(/worker 0 cannot start: no room for another thread, "ulimit -u" is \d+: can't create Thread: .*; raise that limit/, server.stderr)
    end
  end

  def test_a_control_server_whose_path_has_spaces_is_the_same_after_a_hot_restart
    server = versioned("--control-url", "auto", "--temp-dir", "a folder", "--state", "server.state", files: { "a folder/.keep" => "" })
    before = File.read(server.path("server.state"))
    server.write("version", "2")
    server.signal(:USR2)
    restarted(server, "hot restart")

    assert_equal before, File.read(server.path("server.state"))
    assert_includes before, "a folder/fairlead-control-"
  end
end
