# frozen_string_literal: true

module Fairlead
  # The start of a server under a supervisor: opens the configured listeners and files, and forks the first process that loads
  # the application. That process and the program of the supervisor inherit everything.
  class FirstStart
    # The program of the supervisor, below a folder of the load path.
    PROGRAM = "fairlead/fairlead-supervisor"

    # Seconds between two looks at a process that is to end.
    PAUSE = 0.01

    def initialize(service)
      @service = service
      @configuration = service.configuration
    end

    # The address of the control server and its secret; nil without one.
    def control = (@sockets.url && [@sockets.url, @sockets.token])

    # Opens everything. Raises Error; then nothing is open. +inherited+: the Inherited of this process. The block checks the
    # configuration.
    def open(inherited)
      @program = NativeProgram.find(PROGRAM, "the supervisor")
      yield
      PidFile.check(@configuration.pid_file, running: true) if @configuration.pid_file
      @service.open(inherited: inherited)
      @service.tell_of_unused
      @sockets = Control::Sockets.new(@configuration).open
      @sockets.announce(@service.log)
    end

    # Closes everything. Removes files that were made here, unless the supervisor removes them.
    def close
      @handed_over ? @sockets.close : @sockets&.remove
      @service.close(handed_over: @handed_over)
    end

    # Forks the first process, and returns the end of its link. The block makes its Role, from the link and the Native::Shared.
    def fork_first
      EarlySignals.settle
      tell_of_missing_threads if @service.given?
      prepare_process
      ours, theirs = Link.pair
      parent = Process.pid
      @pid = fork do
        [ours, @sockets].each(&:close)
        exit!(1) unless Native.end_with_parent!(parent)
        exit(Role.run(yield(theirs, @shared)))
      end
      theirs.close
      @link = ours
    rescue SystemCallError => e
      [ours, theirs].compact.each(&:close)
      raise Error, "no process can be started: #{Error.plain(e)}"
    end

    # Makes this process the first one: it already has the application. Returns its Role, which the block makes as above.
    def stay
      @shared = Native::Shared.new(Worker::MOST, 0, @configuration.history_bytes)
      Native.open_file_limit!
      @pid = Process.pid
      @link, theirs = Link.pair
      yield(theirs, @shared)
    rescue SystemCallError => e
      raise Error, "the server cannot be started: #{Error.plain(e)}"
    end

    # Returns an EmbeddedSupervisor that has received everything. If that fails, raises Error and ends the first process.
    def embed
      far, near = Link.pair
      hand_over(far)
      EmbeddedSupervisor.new(near, @program).tap { @handed_over = true }
    ensure
      [far, near, @link].each { |link| link&.close }
      end_first unless @handed_over
    end

    # Replaces the program of this process by the supervisor. Its standard input is at first a link, over which it gets
    # descriptors. If that fails, raises Error and ends the first process.
    def exec
      far, near = Link.pair
      put(far, :stdin, ios: [standard_input])
      hand_over(far)
      [$stdout, $stderr].each(&:flush)
      STDIN.reopen(near.to_io)
      arguments = [@program, [Launcher.title(@configuration)], ENV.map { |name, value| "#{name}=#{value}".b }]
      EarlySignals.settle # after the last file that is loaded here
      Native.exec(*arguments)
    rescue SystemCallError, IOError => e
      raise Error, "the supervisor cannot be started: #{Error.plain(e)}"
    ensure
      discard(far, near)
      end_first
    end

    private

    # Threads that a loaded application has, and the program itself.
    def tell_of_missing_threads
      missing = ForkSafety.missing_in_copies
      @service.log.missing_in_workers(missing) if missing.any?
    end

    # Workers of a spawner that has ended, and processes left behind by the application, become children of this process.
    def prepare_process
      Native.open_file_limit!
      Native.adopt_orphans!
      @shared = Native::Shared.new(Worker::MOST, 0, @configuration.history_bytes)
    end

    def hand_over(link)
      settings = SupervisorSettings.new(@service, pid: Process.pid, sockets: @sockets)
      put(link, :settings, ios: [settings.file])
      settings.ios.each_slice(Link::PART) { |part| put(link, :listeners, ios: part) }
      put(link, :shared, ios: @shared.descriptors)
      put(link, :first, @pid, ios: [@link])
    end

    def put(link, kind, *fields, ios:)
      link.send(kind, *fields, ios: ios) || raise(Error, "the supervisor cannot be given the #{kind}")
    end

    # A closed standard input is replaced, because its number may belong to another file.
    def standard_input
      STDIN.stat
      STDIN
    rescue IOError, Errno::EBADF
      File.open(File::NULL)
    end

    # Closes both ends of the link, with all descriptors in its messages. If standard input stays one of them because descriptors are
    # short, the first process is killed in the end.
    def discard(far, near)
      [far, near].each { |link| link&.close }
      STDIN.reopen(File::NULL)
    rescue SystemCallError, IOError
      nil
    end

    # It ends by TERM while it loads the application. Later it ends because its link has no other end: none is open here, or in a
    # message that nobody will receive.
    def end_first
      @link.close unless @link.closed?
      return if @pid == Process.pid

      Process.kill("TERM", @pid)
      limit = RunningTime::Limit.new(@configuration.shutdown_timeout)
      ended = limit.wait { Process.wait(@pid, Process::WNOHANG) || !sleep(PAUSE) }
    rescue Errno::ESRCH, Errno::ECHILD
      ended = true
    ensure
      kill_first unless ended || @pid == Process.pid
    end

    # It is late, or another signal has come.
    def kill_first
      Process.kill("KILL", @pid)
      Process.detach(@pid) # this program may go on
    rescue Errno::ESRCH, ThreadError
      nil
    end
  end
end
