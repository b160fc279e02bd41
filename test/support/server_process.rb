# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "shellwords"
require "tmpdir"
require_relative "processes"
require_relative "waiting"

module Fairlead
  module Test
    # A real `exe/fairlead` in a folder of its own, started with an inline config.ru and always reaped.
    #
    #   server = ServerProcess.new("run ->(env) { [200, {}, ['hello']] }", "-w", "2").start
    #   server.port          # => 40123
    #   server.worker_pids   # => [4712, 4713]
    #   server.stop          # => Process::Status
    #
    # ENV["FAIRLEAD_TEST_RUBY"] names another Ruby (with arguments, if needed). The folders in RUBYLIB come before the
    # checkout's lib, so that they can contain an extension built for that Ruby.
    class ServerProcess
      include Waiting

      class StartError < StandardError; end

      ROOT = File.expand_path("../..", __dir__)
      LISTENING = /listening on (\S+)$/
      READY = /fairlead \S+ ready\b/

      # Variables that would change the server's behaviour.
      CLEARED = %w[
        APP_ENV RACK_ENV RAILS_ENV PORT PIDFILE WEB_CONCURRENCY RUBYOPT BUNDLE_GEMFILE
        FAIRLEAD_MIN_THREADS FAIRLEAD_MAX_THREADS RAILS_MIN_THREADS RAILS_MAX_THREADS MIN_THREADS MAX_THREADS
        PUMA_MIN_THREADS PUMA_MAX_THREADS PUMA_PERSISTENT_TIMEOUT PUMA_LOG_CONFIG FAIRLEAD_LOG_CONFIG PUMA_DEBUG PUMA_FIBER_PER_REQUEST
      ].freeze

      # RUBYOPT of the tests' servers; nil if they share nothing.
      COMPILED = ("--disable-gems -r#{File.join(__dir__, "compiled_files")}" if ENV.key?("FAIRLEAD_TESTS_SHARE"))

      # Environment of a command that starts a server.
      CLEAN = CLEARED.to_h { |name| [name, nil] }.merge("RUBYOPT" => COMPILED).freeze

      attr_reader :directory, :pid, :status

      # +config_ru+: its text, or nil for none. +files+: further files of the folder, path => text. +bind+: nil leaves it to
      # +arguments+ or to the configuration file. +environment+: variables of the process.
      def initialize(config_ru, *arguments, files: {}, bind: "tcp://127.0.0.1:0", environment: {})
        @arguments = (bind ? ["-b", bind] : []) + arguments.map(&:to_s)
        @environment = environment
        @directory = Dir.mktmpdir("fairlead-test-")
        @pid = @status = nil
        write("config.ru", config_ru) if config_ru
        files.each { |path, text| write(path, text) }
      end

      # Returns the same command in the same folder, to start once this one has ended.
      def again = dup.tap(&:forget)

      # Starts the server and returns once it is ready.
      def start(seconds: 20)
        launch
        wait_until("the server to be ready", seconds: seconds) { ready? || exited? }
        raise StartError, "the server ended at once (#{status})\n#{log}" unless ready? && running?

        self
      rescue Waiting::Expired => e
        kill_all
        raise StartError, "#{e.message}\n#{log}"
      end

      # Starts the server and returns at once: for failing starts, and for watching a start.
      def launch
        @pid = Process.spawn(process_environment, *command,
                             chdir: directory, pgroup: true, in: File::NULL, out: log_path(:stdout), err: log_path(:stderr))
        self
      end

      # Sends +signal+ and waits for the end. If a process still runs after +seconds+, kills all and raises Expired.
      def stop(signal = :TERM, seconds: 20)
        signal(signal) if running?
        wait_exit(seconds: seconds)
      ensure
        kill_all
      end

      def wait_exit(seconds: 20)
        wait_until("the server to end", seconds: seconds) { exited? }
        status
      end

      def signal(signal)
        Process.kill(signal, pid)
      end

      # Ends the server and every process that it has left behind, and reaps it. Harmless if no process is left.
      def kill_all
        return unless pid

        begin
          Process.kill(:KILL, -pid)
        rescue Errno::ESRCH
          nil
        end
        @status ||= Process.wait2(pid).last
      rescue Errno::ECHILD
        nil
      end

      # Kills the running processes and removes the folder.
      def destroy
        kill_all
        FileUtils.rm_rf(directory)
      end

      def running?
        !pid.nil? && !exited?
      end

      def exited?
        @status ||= Process.wait2(pid, Process::WNOHANG)&.last
        !@status.nil?
      end

      def ready?
        READY.match?(stdout)
      end

      # Addresses that the server logs: "http://127.0.0.1:40123", "unix:/tmp/…/app.sock".
      def addresses
        stdout.scan(LISTENING).flatten
      end

      def ports
        addresses.filter_map { |address| Integer(address[/:(\d+)\z/, 1], 10) if address.start_with?("http") }
      end

      def port
        ports.first
      end

      def url(path = "/")
        "#{addresses.first}#{path}"
      end

      # Workers, in order of their process ids.
      def worker_pids = children(/\Afairlead: worker /)

      # Processes that serve requests: the workers, or without workers the only process with the application. With a
      # supervisor, that process is a child of it.
      def serving_pids
        workers = worker_pids
        return workers if workers.any?

        sole = children(/\Afairlead(?!: spawner|-)/)
        sole.empty? ? [pid].select { running? && spawner_pid.nil? } : sole
      end

      # The first of these.
      def serving_pid = serving_pids.first

      # The process that forks the workers.
      def spawner_pid = children(/\Afairlead: spawner/).last

      # Processes with the server as their parent and a matching title, in order of their ids. Without the facilities of Linux, the server
      # does not become the parent of its workers; they are processes of its group then, and not forked by a process with such a title.
      def children(title, of: pid)
        return orphans(title) if of == pid && ENV.key?("FAIRLEAD_PORTABLE")

        Dir.glob("/proc/[0-9]*/stat").filter_map { |path| child_pid(path, of) }.select { |pid| title.match?(title_of(pid)) }.sort
      end

      # Waits until there are +count+ workers, and returns their process ids.
      def wait_for_workers(count, seconds: 10)
        wait_until("#{count} workers", seconds: seconds) { (pids = worker_pids).size == count && pids }
      end

      # Waits for a line that matches +pattern+ on either stream; returns the MatchData.
      def wait_for_output(pattern, seconds: 10)
        wait_until("output like #{pattern.inspect}", seconds: seconds) { stdout.match(pattern) || stderr.match(pattern) }
      end

      def stdout = read(:stdout)
      def stderr = read(:stderr)

      # Forgets the process, so that this object belongs to no process any more.
      def forget
        @pid = @status = nil
      end

      def log
        "--- #{command.join(" ")}\n--- stdout\n#{stdout}--- stderr\n#{stderr}---\n"
      end

      def path(name)
        File.join(directory, name)
      end

      # Writes a file into the server's folder and returns its path.
      def write(name, text)
        FileUtils.mkdir_p(File.dirname(path(name)))
        File.write(path(name), text)
        path(name)
      end

      private

      def command
        ruby = ENV["FAIRLEAD_TEST_RUBY"] ? Shellwords.split(ENV["FAIRLEAD_TEST_RUBY"]) : [RbConfig.ruby]
        [*ruby, File.join(ROOT, "exe/fairlead"), *@arguments]
      end

      def process_environment
        rubylib = [*ENV["RUBYLIB"], File.join(ROOT, "lib")].join(File::PATH_SEPARATOR)
        CLEAN.merge("RUBYLIB" => rubylib, **@environment)
      end

      # The state and the parent follow the command name, which is in parentheses and can contain anything.
      def orphans(title)
        group = Processes.group(pid) - [pid]
        found = group.select { |pid| title.match?(title_of(pid)) }
        found.reject { |pid| found.include?(parent_of(pid)) }.sort
      end

      def parent_of(pid)
        Integer(File.read("/proc/#{pid}/stat").rpartition(")").last.split[1], 10)
      rescue SystemCallError
        0
      end

      def child_pid(stat_path, parent_pid)
        text = File.read(stat_path)
        state, parent = text[(text.rindex(")") + 2)..].split.first(2)
        Integer(stat_path[/\d+/], 10) if parent == parent_pid.to_s && state != "Z"
      rescue Errno::ENOENT, Errno::ESRCH
        nil
      end

      def title_of(pid)
        File.binread("/proc/#{pid}/cmdline")
      rescue SystemCallError
        ""
      end

      def log_path(stream)
        path("#{stream}.log")
      end

      def read(stream)
        File.exist?(log_path(stream)) ? File.read(log_path(stream)) : ""
      end
    end
  end
end
