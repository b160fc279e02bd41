# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"

# Descriptors that a server with workers needs, and its message if the limit is lower.
class ProcessDescriptorsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  APP = "run ->(_env) { [200, {}, [Process.pid.to_s]] }"

  def test_one_worker_needs_few
    server = limited(64, "-w", 1, "-t", 1, &:start)

    assert_equal server.worker_pids.first.to_s, get(server).body
  end

  def test_each_further_worker_needs_four_more
    one, four = [1, 4].map { |count| descriptors(serve(APP, "-w", count).pid) }

    assert_equal 12, four - one
  end

  def test_too_few_for_all_workers_end_the_start
    server = limited(64, "-w", 64)

    assert_equal 1, server.wait_exit.exitstatus
    assert_match(/fairlead: .*too few descriptors, "ulimit -n" is 64: #{Errno::EMFILE.new}\n\z/, server.stderr)
  end

  def test_too_few_for_a_worker_to_start_are_told_as_well
    server = limited(64, "-w", 1, app: <<~RUBY)
      FILES = []
      loop { FILES << File.open(File::NULL) } rescue Errno::EMFILE
      3.times { FILES.pop.close } # for files that Ruby still has to load
      #{APP}
    RUBY

    assert_equal 1, server.wait_exit.exitstatus
    assert_match(/worker 0 cannot start: too few descriptors, "ulimit -n" is 64: #{Errno::EMFILE.new} - /, server.stderr)
    refute_match(/\.rb:\d+:in /, server.stderr)
  end

  def test_one_more_worker_than_there_are_descriptors_for_is_not_started
    server = limited(32, "-w", 1, "-t", 1, &:start)
    first = server.worker_pids
    12.times do |count|
      server.signal(:TTIN)
      wait_until("a reaction to TTIN") { server.stdout.include?("changing to #{count + 2} workers") || server.stderr.include?("cannot add a worker") }
    end

    assert_match(/cannot add a worker: too few descriptors, "ulimit -n" is 32: #{Errno::EMFILE.new}/, server.stderr)
    assert_equal first, first & server.worker_pids
  end

  private

  # Starts a server with that limit of open files in each process.
  def limited(count, *arguments, app: APP, &block)
    launch(app, "-C", "few.rb", *arguments, files: { "few.rb" => "Process.setrlimit(:NOFILE, #{count}, #{count})" }, &block)
  end
end
