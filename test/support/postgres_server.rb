# frozen_string_literal: true

require "etc"
require "fileutils"
require "tmpdir"
require_relative "pausing"

module Fairlead
  module Test
    # A PostgreSQL server on a Unix socket in a folder of its own. It can be ended and started again. It refuses to run as root, so then
    # it runs as nobody.
    class PostgresServer
      include Pausing

      PROGRAMS = Dir.glob("/usr/lib/postgresql/*/bin").max_by { |folder| folder[/\d+/].to_i }
      OPTIONS = %w[
        -c dynamic_shared_memory_type=mmap -c listen_addresses= -c fsync=off -c shared_buffers=16MB -c max_connections=40 -c autovacuum=off
      ].freeze

      # Returns the reason to skip a test that needs PostgreSQL, or nil.
      def self.missing
        require "pg"
        "needs postgresql" unless PROGRAMS && File.executable?(File.join(PROGRAMS, "postgres"))
      rescue LoadError
        "needs the gem pg"
      end

      # A new database in that encoding, to copy: initdb takes seconds on a busy machine.
      def self.template(encoding)
        @templates ||= {}
        @templates[encoding] ||= Dir.mktmpdir("fairlead-postgres-template-").then do |folder|
          owner = Process.pid
          at_exit { FileUtils.rm_rf(folder) if Process.pid == owner }
          create(folder, encoding)
        end
      end

      # Returns the folder with the data.
      def self.create(folder, encoding)
        FileUtils.chown("nobody", nil, folder) if Process.uid.zero?
        data = File.join(folder, "data")
        Process.wait(spawn_as_user(folder, "initdb", "-D", data, "-U", "test", "-A", "trust", "-E", encoding, "--locale=C", "--no-sync"))
        raise "initdb failed" unless $?.success?

        data
      end

      def self.spawn_as_user(folder, program, *arguments)
        path = File.join(PROGRAMS, program)
        command = Process.uid.zero? ? ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--", path] : [path]
        Process.spawn(*command, *arguments, chdir: folder, in: File::NULL, out: File::NULL, err: File::NULL)
      end

      # +encoding+: of the database.
      def initialize(encoding: "UTF8")
        @folder = Dir.mktmpdir("fairlead-postgres-")
        FileUtils.chown("nobody", nil, @folder) if Process.uid.zero?
        system("cp", "-a", self.class.template(encoding), data, exception: true)
        start
      end

      def url = "postgres://test@/postgres?host=#{@folder}"

      def start
        @pid = self.class.spawn_as_user(@folder, "postgres", "-D", data, "-k", @folder, *OPTIONS)
        wait_until("PostgreSQL") { answers? }
        self
      rescue StandardError
        kill
        raise
      end

      # Ends all of its processes abruptly, as a crash of the machine does.
      def kill
        return unless @pid

        processes.each { |pid| signal(:KILL, pid) }
        Process.wait(@pid)
        wait_until("the end of its processes") { processes.empty? }
        FileUtils.rm_f(File.join(data, "postmaster.pid"))
        @pid = nil
      end

      # Stops and continues all of its processes.
      def pause = pause_processes(processes)
      def resume = resume_processes(processes)

      # Executes a statement and returns the rows.
      def query(sql)
        connection = PG.connect(url)
        connection.exec(sql).values
      ensure
        connection&.finish
      end

      # Number of connections that listen or publish.
      def connections = Integer(query("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fairlead'")[0][0], 10)

      def destroy
        kill
        FileUtils.rm_rf(@folder)
      end

      private

      def data = File.join(@folder, "data")

      # The server and its children. They have process groups of their own.
      def processes
        return [] unless @pid

        children = Dir.glob("/proc/[0-9]*/stat").filter_map do |path|
          Integer(path[/\d+/], 10) if File.read(path)[/.*\) \S (\d+)/m, 1] == @pid.to_s
        rescue Errno::ENOENT, Errno::ESRCH
          nil
        end
        (children + [@pid]).select { |pid| alive?(pid) }
      end

      def alive?(pid)
        !File.read("/proc/#{pid}/stat").match?(/\) Z /)
      rescue Errno::ENOENT, Errno::ESRCH
        false
      end

      def signal(name, pid)
        Process.kill(name, pid)
      rescue Errno::ESRCH
        nil
      end

      def answers?
        query("SELECT 1") == [["1"]]
      rescue PG::Error
        false
      end
    end
  end
end
