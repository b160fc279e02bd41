# frozen_string_literal: true

module Fairlead
  module Control
    class Tool
      # The server of the command: its control server, if it has one, and its process id. Both come from the arguments, or from
      # the state file, the pid file and the options of its configuration.
      class Target
        # No source names a server, or there is none.
        class Missing < Error; end

        # The largest number that a system call takes.
        MOST_PID = (2**31) - 1

        attr_reader :pid, :url, :token

        # +arguments+: an Arguments. Raises Missing.
        def initialize(arguments)
          @arguments = arguments
          named? ? look_up_named : look_up_configured
        end

        # True if the control server can be asked.
        def control? = !url.nil? && client.reachable?

        def client = Client.new(url, token)

        def running?
          return control? unless pid

          Process.kill(0, pid)
          !over? && !stranger?
        rescue Errno::ESRCH
          false
        rescue Errno::EPERM
          true
        end

        # Raises Missing. A process of another program gets no signal.
        def signal(name)
          raise Missing, "the process id of the server is not known; use -p, -P or -S" unless pid
          raise Missing, "the server is not running (process #{pid} is another program)" if stranger?

          Process.kill(name, pid)
        rescue Errno::ESRCH
          raise Missing, "the server is not running (there is no process #{pid})"
        rescue Errno::EPERM
          raise Missing, "process #{pid} belongs to another user"
        end

        private

        # True if the process does not belong to Fairlead: a file of a killed server may name a process that started later. A
        # process named on the command line is always accepted.
        def stranger?
          !@arguments.pid && !File.binread("/proc/#{pid}/cmdline").include?("fairlead")
        rescue SystemCallError
          false # there is no /proc
        end

        # True if the process has ended, and its parent has not read its status yet.
        def over?
          File.binread("/proc/#{pid}/stat").rpartition(")").last.split.first == "Z"
        rescue SystemCallError
          false # there is no /proc
        end

        def named? = %i[url state pid_file pid].any? { |name| @arguments.public_send(name) }

        def look_up_named
          read_state(@arguments.state) if @arguments.state
          @url = @arguments.url || @url
          @token = @arguments.token || @token
          @pid = (@arguments.pid && process_id(@arguments.pid.to_s, "-p")) || (@arguments.pid_file && read_pid(@arguments.pid_file)) || @pid
        end

        def look_up_configured
          configuration = Configuration.load(Configuration::Flags.parse(flags))
          within = ->(path) { path && SystemText.absolute(path, configuration.directory) }
          look_up_in_files(within[configuration.state_path], within[configuration.pid_file])
          @url ||= configuration.control_url unless configuration.control_url == "auto"
          @token = @arguments.token || @token || configuration.control_token
          return if @url || @pid

          raise Missing, "no server was found: the configuration of this folder names no state file, control server or pid file that is there; " \
                         "use -S, -C, -P or -p"
        end

        def look_up_in_files(state, pid_file)
          read_state(state) if state && File.exist?(state)
          @pid ||= read_pid(pid_file) if pid_file && File.exist?(pid_file)
        end

        def flags
          [*(["-C", @arguments.config] if @arguments.config), *(["-e", @arguments.environment] if @arguments.environment)]
        end

        def read_state(path)
          state = StateFile.read(path)
          raise Missing, "there is no server: the state file #{path} #{File.exist?(path) ? "is empty" : "does not exist"}" if state.empty?

          @pid = process_id(state["pid"], "the state file #{path}") if state["pid"]
          @url, @token = state.values_at("control_url", "control_auth_token")
        end

        def read_pid(path)
          process_id(File.binread(path).strip, "the pid file #{path}")
        rescue SystemCallError
          raise Missing, "there is no server: the pid file #{path} cannot be read"
        end

        # The text of a file. Zero and negative numbers would mean groups of processes.
        def process_id(text, file)
          pid = Integer(text, 10, exception: false)
          pid&.between?(1, MOST_PID) ? pid : raise(Missing, "#{file} contains no process id")
        end
      end
    end
  end
end
