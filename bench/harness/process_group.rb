# frozen_string_literal: true

require "etc"

module Bench
  # The processes of one started server, read from /proc: their number, memory and CPU time. A server is spawned as the
  # leader of its own process group, which contains its workers, whatever server it is. Without /proc (macOS) every
  # value is nil.
  class ProcessGroup
    TICKS_PER_SECOND = Etc.sysconf(Etc::SC_CLK_TCK).to_f

    def initialize(leader)
      @leader = leader
    end

    def self.readable?
      File.exist?("/proc/self/smaps_rollup")
    end

    def pids
      Dir.glob("/proc/[0-9]*/stat").filter_map do |path|
        fields = stat(path)
        Integer(path[/\d+/]) if fields && fields[2].to_i == @leader && fields[0] != "Z"
      end
    end

    # The worker processes: all except the supervisor and the process that forks workers for it; or the only process.
    def workers
      found = pids
      found.size > 1 ? (found - [@leader]).reject { |pid| spawner?(pid) } : found
    end

    # Proportional set size in KiB: shared pages count once over all processes, which shows the benefit of preloading.
    def memory_kib(of: pids)
      return unless ProcessGroup.readable?

      of.sum { |pid| File.read("/proc/#{pid}/smaps_rollup")[/^Pss:\s+(\d+)/, 1].to_i }
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end

    # The same by role: the leader of the group, the process that forks workers for it if there is one, and the workers.
    def memory_by_role
      found = pids
      roles = found.group_by { |pid| role(pid) }
      memory = roles.transform_values { |ones| memory_kib(of: ones) }
      memory.merge("total" => memory.values.sum) if found.any? && memory.values.all?
    end

    # Seconds of user and system time of the living processes and of their ended children.
    def cpu_seconds(of: pids)
      return unless ProcessGroup.readable?

      of.sum { |pid| own_cpu_seconds(pid) + ended_cpu_seconds(pid) }
    end

    # Number of times that their threads have been woken so far.
    def wake_ups(of: pids)
      each_thread(of, "status").sum { |text| text[/^voluntary_ctxt_switches:\s+(\d+)/, 1].to_i }
    end

    # True if one of their threads runs, or would if it had a processor.
    def running?(of: pids)
      each_thread(of, "stat").any? { |text| text.rpartition(")").last.start_with?(" R") }
    end

    def cpu_ticks(pid)
      fields = stat("/proc/#{pid}/stat")
      fields ? fields[11].to_i + fields[12].to_i : 0
    end

    # Number of descriptors that all of them have open.
    def descriptors(of: pids)
      return unless ProcessGroup.readable?

      of.sum { |pid| Dir.children("/proc/#{pid}/fd").size }
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end

    private

    # The clock of a process's CPU time (clock_getcpuclockid(3)) counts nanoseconds, and threads that have ended.
    def own_cpu_seconds(pid)
      Process.clock_gettime((~pid << 3) | 2)
    rescue Errno::EINVAL, Errno::ESRCH
      0
    end

    def ended_cpu_seconds(pid)
      fields = stat("/proc/#{pid}/stat")
      fields ? (fields[13].to_i + fields[14].to_i) / TICKS_PER_SECOND : 0
    end

    # A file of each of their threads.
    def each_thread(pids, name)
      pids.flat_map { |pid| Dir.glob("/proc/#{pid}/task/*/#{name}") }.filter_map do |path|
        File.read(path)
      rescue Errno::ENOENT, Errno::ESRCH
        nil
      end
    end

    def role(pid)
      return "leader" if pid == @leader

      spawner?(pid) ? "spawner" : "workers"
    end

    # True if it is Fairlead's spawner, which loads the application and forks the workers.
    def spawner?(pid)
      File.read("/proc/#{pid}/cmdline").start_with?("fairlead: spawner")
    rescue Errno::ENOENT, Errno::ESRCH
      false
    end

    # The fields after the command name, which may itself contain spaces and parentheses: state is the first.
    def stat(path)
      File.read(path).rpartition(")").last.split
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end
  end
end
