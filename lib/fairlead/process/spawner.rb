# frozen_string_literal: true

module Fairlead
  # The process that loads the application (with `preload`) and forks the workers of one generation. Plugins and the hooks of
  # Puma's "master" run here, beside the application. It is forked from the supervisor, or is a separate program, or was a
  # worker that has stopped serving (a refork). It ends when the supervisor asks for it, or has ended.
  #
  #   loading ──▶ waiting ──fork──▶ waiting … ──end──▶ ended
  class Spawner
    include Role

    # The environment variable with the descriptor of the link, in a separate program.
    VARIABLE = "FAIRLEAD_SPAWNER"

    # Seconds between two looks at the process between this one and a worker.
    AWAIT_PAUSES = (0.0005..0.05)

    class << self
      # The link to the supervisor that has started this process as a spawner; nil in other processes.
      def inherited_link(environment = ENV)
        descriptor = environment.delete(VARIABLE)
        @link = Link.adopt(Integer(descriptor, 10)) if descriptor
      end

      # If this is a spawner, tells the supervisor why it cannot start. Returns true if the supervisor was told.
      def report_failure(error) = @link&.send(:failed, error.message) || false
    end

    # +link+: to the supervisor. +shared+: as for Engine. +number+: of the generation. +warm+: true if this process was a
    # worker, so that the application is loaded. +joining+: the Joining, in a separate program.
    def initialize(service, link, shared, number, warm: false, joining: nil)
      @service = service
      @log = service.log
      @link = link
      @shared = shared
      @number = number
      @warm = warm
      @joining = joining
      @signals = Signals.new
      @steward = Steward.new(service, link, joining: joining)
      @plugins = Plugins.new(self, service)
    end

    # Forks workers until it is asked to end; returns the exit status.
    def run
      prepare_process
      @plugins.start
      load
      serve
      @steward.close
      @service.listeners.close # otherwise the next server on the address might wait in vain
      run_hooks(:after_stopped)
      @plugins.stopped
      @log.stopped if @server_ends && !@log.plain?
      0
    rescue Shortage => e
      @link.send(:failed, Shortage.to_error(e).message)
      @steward.give_up
      1
    ensure
      @signals.restore
    end

    # Asks the supervisor for something: :stop, :halt, :restart, :phased_restart, :refork, :reopen_logs, :reload_certificates, :add_worker,
    # :remove_worker or :backtraces.
    def ask(request) = @link.send(:ask, request)

    def stop_later = ask(:stop)

    private

    # A Ctrl-C reaches every process of the terminal; the supervisor decides about it. While the application is being loaded,
    # this process has nothing to finish.
    def prepare_process
      @pid = Process.pid
      @supervisor = Process.ppid
      Launcher.current&.continue_as(self)
      Stats.shared = @shared
      Process.setproctitle("fairlead: spawner, generation #{@number} [#{@service.configuration.tag}]")
      @signals.ignore("INT", "HUP", "USR1", "USR2", "TTIN", "TTOU", "URG")
      @signals.exit_on("TERM", "QUIT") { @joining&.close }
    end

    def load
      others = Thread.list # of the program, and of plugins
      @service.preload? ? @service.prepare : EagerLoad.run
      share_memory if @service.preload? || @warm
      run_hooks(:before_fork) unless @warm
      check_copies(@warm ? [] : others) if @service.preload? || @warm
    end

    def share_memory
      SharedHeap.prepare(soon: !@warm)
      @log.room_lost if SharedHeap.loses_room?
    end

    # Logs what the workers will lack. If they will share a connection, the end of a worker may close it for all of them, so no refork
    # begins by itself: it would end workers.
    def check_copies(others)
      missing = ForkSafety.missing_in_copies(but: others)
      @log.missing_in_workers(missing) if missing.any?
      return if @warm || @service.configuration.refork_after.zero?

      peers = ForkSafety.shared_peers
      return if peers.empty?

      @log.refork_off(peers)
      @link.send(:shares_connections)
    rescue StandardError => e
      @log.warning("it is unknown if the processes share connections: #{Error.plain(e)}")
    end

    # A hook may hang, so the process ends with its link even if no Ruby runs, once its hooks have had their time.
    def serve
      @signals.trap("TERM", "INT")
      Native.end_with_link!(@link.fileno, Worker::EXIT_GRACE, Worker::EXIT_GRACE)
      introduce
      until @ended
        @steward.look
        @signals.wait(@steward.pause, @link).each do |event|
          event == @link ? @link.messages.each { |message| @steward.act_on(message) || act_on(message) } : ask(:stop)
        end
      end
    end

    def introduce
      return @steward.report(@supervisor) unless @warm

      @link.send(:promoted)
      @steward.begin
    end

    def act_on(message)
      case message.kind
      when :fork then fork_worker(message.number(0), message.number(1), message.ios)
      when :booted then booted
      when :worker_lost then run_hooks(:worker_lost, message.number)
      when :worker_ended then worker_ended(*message.fields)
      when :restarting then restarting
      when :close_listeners then close_listeners
      when :end, :gone then @ended = true
      end
    end

    # The server ends.
    def close_listeners
      @server_ends = true
      @service.listeners.close
    end

    # A worker that has ended, for the hook; +process_status+ has the methods of a Process::Status.
    Ended = Struct.new(:index, :pid, :process_status)
    Status = Struct.new(:exitstatus, :termsig) do
      def signaled? = !termsig.nil?
      def exited? = !exitstatus.nil?
      def success? = signaled? ? nil : exitstatus&.zero?
    end

    def worker_ended(index, pid, code = "", signal = "")
      numbers = [index, pid, code, signal].map { |text| Integer(text, 10, exception: false) }
      run_hooks(:after_worker_shutdown, Ended.new(*numbers.first(2), Status.new(*numbers.last(2))))
    end

    def booted
      run_hooks(@warm ? :after_refork : :after_booted)
      @plugins.booted
    end

    def restarting
      run_hooks(:before_restart, @plugins.launcher)
      @plugins.will_restart
    end

    # On Linux, a process that ends at once forks the worker, which makes it a child of the supervisor. Elsewhere it is a child of this
    # process, which reports its status. +socket+: the worker's end of its
    # link. +mailbox+: the descriptors of its mailbox.
    def fork_worker(index, slot, (socket, *mailbox))
      link = Link.new(socket)
      @shared.adopt_mailbox(slot, mailbox.map(&:fileno))
      mailbox.each(&:close)
      run_hooks(:before_worker_fork, index)
      fork_into(link) { become_worker(index, slot, link) }
      link.close
      run_hooks(:after_worker_fork, index)
    end

    # Calls the block in a new process. Returns only in this process.
    def fork_into(link, &block)
      Native.portable? ? fork_child(&block) : fork_orphan(&block)
    rescue SystemCallError, Error => e
      link.send(:failed, Error.plain(e))
      exit! unless Process.pid == @pid
    end

    # In the new process, no thread is left that could be changing an offer.
    def fork_orphan
      if (between = Tls::Offer.changing.synchronize { fork })
        await(between)
      else
        fork ? exit! : yield
      end
    end

    # The system, or the application, may have taken the status of the child: then it has ended, too. If it hangs, nobody else knows of it.
    def await(child)
      pause = AWAIT_PAUSES.min
      ended = RunningTime::Limit.new(@service.configuration.worker_timeout / 2.0).wait do |rest|
        next true if Process.wait(child, Process::WNOHANG)

        sleep([pause, rest].min)
        pause = [pause * 2, AWAIT_PAUSES.max].min
        false
      end
      return if ended

      Process.kill(:KILL, child)
      Process.wait(child)
      raise Error, "the fork hangs, perhaps in a handler of the application (Process._fork, pthread_atfork)"
    rescue Errno::ECHILD
      nil
    end

    def fork_child
      pid = Tls::Offer.changing.synchronize { fork }
      pid ? report_status(pid) : yield
    end

    def report_status(pid)
      waiter = Process.detach(pid)
      Thread.new { waiter.value&.then { |status| @link.send(:status, pid, status.exitstatus, status.termsig) } }
    rescue ThreadError
      nil # there is no room for a thread; the supervisor does not learn the status
    end

    def become_worker(index, slot, link)
      link.send(:forked, Process.pid)
      @link.close
      become Worker.new(@service, link, @shared, index: index, slot: slot, generation: @number)
    end

    def run_hooks(name, *arguments) = @service.configuration.hooks.run(name, *arguments, log: @log)
  end
end
