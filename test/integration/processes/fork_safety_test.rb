# frozen_string_literal: true

require "test_helper"
require "support/postgres_server"
require "support/restarts"

# Threads, timers and connections that the application has when its processes are forked.
class ForkSafetyAtForksTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Restarts

  APP = <<~'RUBY'
    run ->(_env) { [200, {}, [Process.pid.to_s]] }
  RUBY

  THREADS = <<~'RUBY'
    Thread.new { sleep }.name = "reporter"
    Thread.new { sleep }.thread_variable_set(:fork_safe, true)
    Thread.new { sleep }[:fork_safe] = true
  RUBY

  LACKS = /not in the workers, because a fork copies no threads: thread @reporter \S+config\.ru:1; start them in before_worker_boot/

  def test_a_thread_that_the_application_has_started_at_boot_is_told
    server = serve("#{THREADS}#{APP}", "-w", 2, "--preload")

    assert_match(LACKS, server.stderr)
  end

  def test_a_thread_that_before_fork_ends_is_not_told
    server = serve("THREAD = Thread.new { sleep }\n#{APP}", "-w", 2, "--preload", files: { "config/fairlead.rb" => <<~RUBY })
      before_fork { THREAD.kill.join }
    RUBY

    assert_empty server.stderr
  end

  # Each worker has its own.
  def test_without_preload_only_a_refork_loses_it
    server = serve("#{THREADS}#{APP}", "-w", 2, "--no-preload")

    refute_match(LACKS, server.stderr)
    server.signal(:URG)
    restarted(server, "refork")

    assert_match(LACKS, server.stderr)
  end

  def test_threads_and_timers_that_a_request_of_the_warm_up_starts_are_told
    server = serve(<<~RUBY, "-w", 1, "--preload", "--warm-up", "/")
      require "concurrent"
      run lambda { |env|
        if env["fairlead.warm_up"] && !defined?(TIMER)
          Thread.new { sleep }.name = "cleaner"
          TIMER = Concurrent::ScheduledTask.execute(1000) { 1 }
          Fairlead.run_after(1000) { 1 }
        end
        [200, {}, []]
      }
    RUBY

    assert_match(/not in the workers, .*: thread @cleaner \S+config\.ru:4, timers of concurrent-ruby \(1\);/, server.stderr)
    assert_match(/warm_up: its requests have started 1 timer of Fairlead, which will run in each worker/, server.stderr)
  end

  # The end of one worker would close it for all of them.
  def test_a_connection_that_all_workers_share_keeps_a_refork_from_beginning
    skip PostgresServer.missing if PostgresServer.missing
    database = PostgresServer.new
    server = serve(<<~RUBY, "-w", 1, "--preload", "--refork-after=30")
      require "pg"
      DATABASE = PG.connect(#{database.url.dump})
      run ->(_env) { [200, {}, [DATABASE.exec("SELECT \#{Process.pid}").getvalue(0, 0)]] }
    RUBY
    pid = server.worker_pids.first

    assert_match(%r{no refork will begin by itself, because all workers share a connection to /.*PGSQL.*before_worker_boot}, server.stderr)
    120.times { assert_equal pid.to_s, answer(server) }
    assert_equal [pid], server.worker_pids
    refute_match(/refork: worker/, server.stdout)
  ensure
    database&.destroy
  end

  # Active Record would leave it open in the spawner, and opens another one in each worker.
  def test_a_connection_of_active_record_is_closed_before_the_fork
    skip PostgresServer.missing if PostgresServer.missing
    database = PostgresServer.new
    server = serve(<<~RUBY, "-w", 1, "--preload", "--refork-after=30")
      require "active_record"
      ActiveRecord::Base.establish_connection(adapter: "postgresql", host: #{database.url[/host=(.*)/, 1].dump}, username: "test", database: "postgres")
      ActiveRecord::Base.connection.select_value("SELECT 1")
      run lambda { |_env|
        ActiveRecord::Base.connection_pool.with_connection { |one| [200, {}, [one.select_value("SELECT \#{Process.pid}").to_s]] }
      }
    RUBY
    60.times { assert_match(/\A\d+\z/, answer(server)) }
    restarted(server, "refork")

    refute_match(/no refork will begin/, server.stderr)
    assert_match(/\A\d+\z/, answer(server))
  ensure
    database&.destroy
  end

  # Without free descriptors the worker cannot see its connections. The application wants the process to end with each thread that fails.
  def test_a_worker_that_cannot_examine_itself_serves_on
    server = serve(<<~'RUBY', "-w", 1, "--refork-after=30", "-e", "production", "--no-waiting-room")
      Thread.abort_on_exception = true
      run lambda { |env|
        if env["PATH_INFO"] == "/full"
          Process.setrlimit(Process::RLIMIT_NOFILE, 100)
          files = []
          (files << File.open(File::NULL)) while files.size < 100 rescue FILES = files
        end
        [200, {}, [Process.pid.to_s]]
      }
    RUBY
    pid = server.worker_pids.first
    responses = Net::HTTP.start("127.0.0.1", server.port) do |http|
      http.get("/full")
      Array.new(40) { http.get("/").body }.tap do
        wait_until("the end of the examination") { server.stderr.match?(/none begins by itself .* unknown if a worker can be copied: Too many/) }
      end << http.get("/").body
    end

    assert_equal [pid.to_s], responses.uniq
  end

  def test_methods_of_a_class_of_threads_do_not_matter
    server = serve(<<~'RUBY', "-w", 1, "--refork-after=30", "-e", "production")
      class Reporter < Thread
        def inspect = sleep
      end

      run lambda { |env|
        Reporter.new { sleep } if env["PATH_INFO"] == "/report"
        [200, {}, [Process.pid.to_s]]
      }
    RUBY
    Net::HTTP.get(URI(server.url("/report")))
    60.times { answer(server) }

    assert_logged(/refork: none begins by itself .*: thread \S+config\.ru:6 would not run in the copies/, server, seconds: 20)
  end

  # Each copy would be the leader.
  def test_a_worker_with_a_lock_of_a_file_is_not_copied
    server = serve(<<~'RUBY', "-w", 1, "--refork-after=30", "-e", "production")
      run lambda { |_env|
        $lock ||= File.open("leader.lock", "a").tap { |file| file.flock(File::LOCK_EX | File::LOCK_NB) }
        [200, {}, [Process.pid.to_s]]
      }
    RUBY
    60.times { answer(server) }

    assert_logged(%r{refork: none begins by itself .*: the lock of /\S+/leader\.lock would be shared by the copies}, server, seconds: 20)
  end

  # The copies share it anyway.
  def test_a_lock_that_the_spawner_has_taken_does_not_matter
    server = serve(<<~RUBY, "-w", 1, "--preload", "--refork-after=30")
      LOCK = File.open("server.lock", "a").tap { |file| file.flock(File::LOCK_EX | File::LOCK_NB) }
      #{APP}
    RUBY
    60.times { answer(server) }

    restarted(server, "refork")
  end

  # Nobody learns then that a child has ended.
  def test_an_application_that_ignores_the_ends_of_its_children_is_served
    server = serve("trap(:CLD, 'IGNORE')\n#{APP}", "-w", 2, "--preload")

    assert_match(/\A\d+\z/, answer(server))
    assert_equal 2, server.worker_pids.size
  end

  # The server waits for half a minute.
  def test_a_worker_that_says_nothing_is_told
    server = serve(<<~'RUBY', "-w", 1, "--refork-after=30", "-e", "production")
      $LOADED_FEATURES << "concurrent"
      module Concurrent
        class TimerSet; end
        class ThreadPoolExecutor; end
      end
      def ObjectSpace.each_object(*) = sleep
      run ->(_env) { [200, {}, [Process.pid.to_s]] }
    RUBY
    60.times { answer(server) }

    assert_logged(/refork: none begins by itself .*: a worker did not say within 30 s if it can be copied/, server, seconds: 60)
  end

  # Only what the hook leaves matters, so the worker must stop serving first.
  def test_a_thread_that_before_refork_starts_ends_the_refork_and_the_worker
    file = "before_refork { Thread.new { sleep } }\n"
    server = serve(APP, "-w", 1, "--no-preload", "--refork-after=30", files: { "config/fairlead.rb" => file })
    pid = server.worker_pids.first
    60.times { answer(server) }
    wait_until("the end of the refork", seconds: 30) { server.stderr.match?(/refork: failed, .*fairlead\.rb:1 would not run in the copies \(see/) }

    wait_until("the end of the worker") { !server.worker_pids.include?(pid) }
    assert_match(/\A\d+\z/, answer(server))
  end

  PostgresServer = Fairlead::Test::PostgresServer
end
