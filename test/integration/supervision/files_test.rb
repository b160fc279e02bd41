# frozen_string_literal: true

require "test_helper"
require "support/control"
require "support/supervision"

# The server's files across faults and restarts.
class FilesOverRestartsTest < Minitest::Test
  include Fairlead::Test::Supervision
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  FIRST = %(pid_file "first.pid"\nstate_path "first.state"\ncontrol_url "unix://first.sock"\n)
  SECOND = FIRST.gsub("first", "second").freeze

  SHAPES.each do |name, workers|
    define_method(:"test_files_of_other_names_take_the_place_of_the_old_ones_#{name}") do
      server = supervised(workers, config: FIRST)
      assert_equal %w[first.pid first.sock first.state], files(server)
      configure(server, SECOND)
      assert_restarts(server)

      wait_until("only the new files", seconds: PATIENCE) { files(server) == %w[second.pid second.sock second.state] }
      assert_equal "#{server.pid}\n", File.read(server.path("second.pid"))
      assert_equal [server.pid.to_s, "unix://#{server.path("second.sock")}"], state_of(server, "second.state").values_at("pid", "control_url")
      assert_equal 0, ctl("-S", server.path("second.state"), "status").first
      assert_ends(server)
      assert_empty files(server)
    end

    define_method(:"test_files_that_are_not_wanted_any_more_disappear_#{name}") do
      server = supervised(workers, config: FIRST)
      configure(server, "")
      assert_restarts(server)

      wait_until("no files", seconds: PATIENCE) { files(server).empty? }
    end

    define_method(:"test_other_addresses_take_the_place_of_the_old_ones_#{name}") do
      server = supervised(workers, config: %(bind "unix://first.sock"))
      configure(server, %(bind "unix://second.sock"))
      assert_restarts(server)

      wait_until("only the new socket", seconds: PATIENCE) { files(server) == %w[second.sock] }
      UNIXSocket.open(server.path("second.sock")) { |socket| assert_match(/\A2 /, Fairlead::Test::HttpClient.new(socket).get.body) }
    end

    # The token must not stay in a forgotten file.
    define_method(:"test_a_state_file_that_cannot_be_written_leaves_no_temporary_file_#{name}") do
      server = prepared(workers, config: %(state_path "small/server.state"\ncontrol_url "auto"\n), files: { "small/.keep" => "" }, &:itself)
      with_small_disk(server, "small") do
        server.start
        fill_disk(server, "small")
        server.signal(:USR2)
        wait_until("an outcome", seconds: PATIENCE) do
          server.exited? || server.stderr[/hot restart: .*small/] || server.stdout.scan(/restart: done| ready /).size > 1
        end

        assert_predicate server, :running?
        assert_empty Dir.children(server.path("small")) - %w[.keep ballast server.state]
      end
    end

    define_method(:"test_a_state_file_that_cannot_be_written_at_the_start_leaves_no_temporary_file_#{name}") do
      server = prepared(workers, config: %(state_path "small/server.state"\ncontrol_url "auto"\n), files: { "small/.keep" => "" }, &:itself)
      with_small_disk(server, "small") do
        fill_disk(server, "small")
        server.launch

        assert_equal 1, server.wait_exit.exitstatus
        assert_equal %w[ballast], Dir.children(server.path("small")) - %w[.keep]
        assert_empty Fairlead::Test::Processes.group(server.pid)
      end
    end
  end

  private

  def files(server) = Dir.children(server.directory).grep(/\A(?:first|second)\./).sort

  def state_of(server, name) = Fairlead::Control::StateFile.read(server.path(name))
end
