# frozen_string_literal: true

module Fairlead
  module Control
    # `fairlead ctl`: sends a command to a running server, through its control server if it has one, otherwise as a signal. It
    # takes the arguments of pumactl.
    #
    # Exit statuses: 0 if the command succeeded, 1 if it failed or the server is not running, 2 if the arguments are wrong.
    class Tool
      autoload :Arguments, "fairlead/control/tool/arguments"
      autoload :Target, "fairlead/control/tool/target"
      autoload :Screen, "fairlead/control/tool/screen"
      autoload :Patience, "fairlead/control/tool/patience"
      autoload :Dashboard, "fairlead/control/tool/dashboard"
      autoload :Top, "fairlead/control/tool/top"

      # command => [signal, or nil if only the control server can do it; its effect]
      COMMANDS = {
        "status" => [0, "whether it runs, its workers and its last restart"],
        "ready" => [nil, "whether it serves requests: for health checks"],
        "stats" => [nil, "its statistics, with Puma's names"],
        "dashboard" => [nil, "shows it in a browser, until Ctrl-C"],
        "top" => [nil, "shows it in this terminal, until q; also fairlead top"],
        "restart" => ["USR2", "hot restart: a new server with the same listeners"],
        "phased-restart" => ["USR1", "replaces the workers one by one"],
        "refork" => ["URG", "replaces the workers by copies of a warm one"],
        "stop" => ["TERM", "ends it after the requests that have arrived"],
        "halt" => ["QUIT", "ends it at once"],
        "pause" => [nil, "has new requests wait, each for up to SEC seconds: pause [SEC]"],
        "resume" => [nil, "ends the pause"],
        "reopen-log" => ["HUP", "reopens its log files"],
        "reload-certificates" => [nil, "reads its certificates again"],
        "worker-count-up" => ["TTIN", "adds a worker"],
        "worker-count-down" => ["TTOU", "removes a worker"],
        "info" => [Signal.list.key?("INFO") ? "INFO" : "PWR", "logs what each thread does"],
        "thread-backtraces" => [nil, "what each thread of its workers does, and for which request"],
        "gc" => [nil, "collects garbage in its first process"],
        "gc-stats" => [nil, "Ruby's statistics of that"],
        "reload-worker-directory" => [nil, "does nothing: restarts follow the folder"],
        "start" => [nil, "starts a server, with the arguments of fairlead"]
      }.freeze

      # The commands with output, and their output for people.
      SHOWN = {
        "status" => :status, "stats" => :values, "gc-stats" => :values, "thread-backtraces" => :backtraces
      }.freeze

      # Commands that need POST.
      POSTED = %w[pause resume].freeze

      # The commands that go on until they are interrupted.
      WATCHING = %w[dashboard top].freeze

      # Commands with another name in the control server, where Puma's command returns less.
      PATHS = { "thread-backtraces" => "backtraces" }.freeze

      # Runs the command and returns its exit status.
      def self.run(arguments, output: $stdout, errors: $stderr)
        new(output, errors).run(arguments)
      end

      def initialize(output, errors)
        @output = output
        @errors = errors
      end

      def run(arguments)
        @arguments = Arguments.new(arguments)
        return print(@arguments.usage) if @arguments.help?
        return print("fairlead #{VERSION}\n") if @arguments.version?

        check_command
        @arguments.command == "start" ? start : steer
      rescue Arguments::Invalid => e
        fail_with(e, 2)
      rescue Error => e
        fail_with(e, 1)
      end

      private

      def check_command
        command = @arguments.command
        raise Arguments::Invalid, "the command is missing; see fairlead ctl --help" unless command
        raise Arguments::Invalid, "unknown command #{command}; see fairlead ctl --help" unless COMMANDS.key?(command)
        return if command == "start" || @arguments.rest.empty?
        return check_pause if command == "pause" && @arguments.rest.one?

        raise Arguments::Invalid, "unexpected argument: #{@arguments.rest.first}; #{command} takes none, see fairlead ctl --help"
      end

      def check_pause
        Float(@arguments.rest.first).then { |seconds| seconds.finite? && seconds >= 0 } || raise(ArgumentError)
      rescue ArgumentError
        raise Arguments::Invalid, "pause takes a number of seconds, such as 10, not #{@arguments.rest.first.inspect}"
      end

      def start
        file = ["-C", @arguments.config] if @arguments.config
        environment = ["-e", @arguments.environment] if @arguments.environment
        CLI.start([*file, *environment, *@arguments.rest], output: @output, errors: @errors)
      end

      # With --wait it prints nothing until the server has done it.
      def steer
        target = Target.new(@arguments)
        return watch(target) if WATCHING.include?(@arguments.command)

        @patience = Patience.new(@arguments, target) if @arguments.wait
        target.control? ? ask(target) : signal(target)
        0
      end

      # --- through the control server

      def ask(target)
        command = @arguments.command
        body = POSTED.include?(command) ? target.client.post(posted) : target.client.get(PATHS.fetch(command, command))
        shown = SHOWN[command]
        return done unless shown
        return print("#{body}\n") if @arguments.json?

        require "json"
        print(Screen.public_send(shown, JSON.parse(body)).map { |line| "#{line}\n" }.join)
      end

      def posted
        timeout = @arguments.rest.first
        timeout ? "#{@arguments.command}?timeout=#{Float(timeout)}" : @arguments.command
      end

      # --- until it is interrupted

      def watch(target)
        signal(target) unless target.control? # raises the reason
        client = -> { look_up(target) }
        return Dashboard.new(@output, &client).run if @arguments.command == "dashboard"

        top = Top.new(@output, &client)
        @arguments.once? ? top.once : top.run
      rescue SignalException => e
        raise unless e.signo == Signal.list["INT"]

        0 # Ctrl-C
      end

      # A restart may have changed the address or the token.
      def look_up(target) = target.control? ? target.client : Target.new(@arguments).client

      # --- as a signal

      def signal(target)
        signal, = COMMANDS.fetch(@arguments.command)
        raise Error, "the server is not running (#{target.pid ? "pid #{target.pid}" : "nobody answers at #{target.url}"})" unless target.running?
        raise Error, "#{@arguments.command} needs the control server (control_url), which the server does not have" unless signal

        target.signal(signal)
        return say("running (pid #{target.pid}); it has no control server to ask more", pid: target.pid, state: "running") if signal.is_a?(Integer)

        return done if @patience

        say("#{@arguments.command}: sent #{signal} to #{target.pid}", command: @arguments.command, status: "sent", pid: target.pid)
      end

      def done
        @patience&.wait
        say("#{@arguments.command}: ok", command: @arguments.command, status: "ok")
      end

      # --- output

      def say(text, **values)
        return if @arguments.quiet?
        return print("#{text}\n") unless @arguments.json?

        require "json"
        print("#{JSON.generate(values)}\n")
      end

      def print(text) = CLI.print(text, @output)

      def fail_with(error, status)
        @errors.write("fairlead ctl: #{SystemText.shown(error.message).gsub("\n", "\nfairlead ctl: ")}\n")
        status
      end
    end
  end
end
