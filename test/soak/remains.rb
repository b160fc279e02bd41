# frozen_string_literal: true

require_relative "gauges"

module Fairlead
  module Soak
    # Resources that a server still holds after the last request: measured after a warm-up and at the end, and compared.
    # Killed workers have been replaced, so the process with the most counts.
    class Remains
      # Allowed growth since the warm-up: a few descriptors and threads, and memory, in MiB. A heap that was full once stays
      # fragmented; a leak grows with every request. Each process keeps two descriptors, a mailbox, for each worker that has ever
      # served at the same time as others: a restart and TTIN need more of them. There are at most 64.
      MORE = { descriptors: 16, threads: 2, memory: 64, untidy: 128,
               supervisor_descriptors: 18, supervisor_memory: 8, spawner_descriptors: 16 }.freeze

      # Objects of the application that must have ended as often as they have begun.
      ENDS = %i[bodies requests clients deferred].freeze

      # Resources that must be zero: connections, files without a name, unended objects, processes that do not report, and
      # processes without an owner.
      NONE = [:connections, :unnamed, *ENDS, :silent, :strays].freeze

      # Allowed share of a processor for an idle process.
      BUSY = 0.3

      # Seconds of observation, and the longest time to become idle.
      WATCHED = 1
      PATIENCE = 30

      extend Test::Waiting

      class << self
        # Waits until the connections are gone and each process has collected its garbage, then measures. A process that is
        # not idle in time shows in the results. +before+: Remains after the warm-up, if there are any: the server then has to return memory
        # by itself first.
        def of(site, before = nil)
          patiently("the workers to be back") { site.whole? }
          patiently("the connections to end") { connections(site).zero? }
          untidy = before ? returned(site, before) : {}
          told = {}
          patiently("everything to end") { (told = tidy(site)).values.all? { |figures| figures.values_at(*ENDS).all?(&:zero?) } }
          patiently("the last connection to end") { connections(site).zero? }
          told.each { |pid, figures| figures[:untidy] = untidy[pid] }
          new(site, told)
        end

        # Gauges of the idle server that have not come back to their values, as texts. +before+: Gauges after the warm-up.
        def left_over(site, before)
          patiently("the workers to be back") { site.whole? }
          gauges = nil
          patiently("the gauges to come back") { (gauges = Gauges.of(site)) && gauges.busy(before).empty? }
          gauges ? gauges.busy(before) : ["the control server does not respond"]
        end

        private

        # Memory of each process, in MiB, once the server has returned enough of it: before the soak makes it tidy up.
        def returned(site, before)
          memory = {}
          patiently("memory to be returned") do
            memory = site.serving.to_h { |pid| [pid, Test::Processes.proportional_memory(pid) >> 20] }
            memory.values.all? { |megabytes| megabytes <= before.most_allowed(:untidy) }
          end
          memory
        rescue Errno::ENOENT, Errno::ESRCH
          {}
        end

        def connections(site) = site.serving.sum { |pid| Test::Processes.clients(pid, site.port).size }

        def patiently(what, &condition)
          wait_until(what, seconds: PATIENCE, &condition)
        rescue Test::Waiting::Expired
          nil
        end

        # Makes each process collect its garbage; returns its report, by process.
        def tidy(site)
          id = format("%x", rand(2**40))
          ask(site, "/tidy?id=#{id}")
          lines = []
          patiently("every process to collect its garbage") do
            lines = site.lines("tidied").map(&:split).select { |line| line.first == id }
            (site.serving - lines.map { |line| line[1].to_i }).empty?
          end
          lines.to_h { |_, pid, *figures| [pid.to_i, [:threads, *ENDS].zip(figures.map(&:to_i)).to_h] }
        end

        def ask(site, target)
          client = Test::HttpClient.new(TCPSocket.new("127.0.0.1", site.port))
          client.request("GET", target).final_answer
        rescue Test::HttpClient::CutOff, SystemCallError
          nil
        ensure
          client&.close
        end
      end

      # +told+: report of each process.
      def initialize(site, told)
        @processes = site.serving.to_h { |pid| [pid, look(pid, site).merge(told.fetch(pid) { { silent: 1 } })] }
        watch
        @server = look_at_server(site)
        @strays = Test::Processes.group(site.server.pid) - site.serving - [site.server.pid, site.server.spawner_pid]
      end

      # Value of the process with the largest one.
      def most(name) = name == :strays ? @strays.size : @server[name] || @processes.values.map { |figures| figures[name] || 0 }.max_by(&:abs)

      # Value to compare a later one with.
      def basis(name) = most(name == :untidy ? :memory : name)

      # The largest value that is right later.
      def most_allowed(name) = basis(name) + MORE.fetch(name)

      # Descriptors of the supervisor that it did not have +before+, by what they lead to.
      def new_files(before)
        more = files.to_h { |name, count| [name, count - before.files.fetch(name, 0)] }
        more.select { |_, count| count.positive? }.map { |name, count| "#{name}: #{count}" }
      end

      # Returns [name, value before, value now, true if that is allowed] for each resource.
      def compared(before)
        kept = MORE.keys.map { |name| [name, before.basis(name), most(name), most(name) <= before.most_allowed(name)] }
        none = NONE.map { |name| [name, before.most(name), most(name), most(name).zero?] }
        kept + none + [[:busy, before.most(:busy), most(:busy), most(:busy) <= BUSY]]
      end

      protected

      attr_reader :files

      private

      def look_at_server(site)
        supervisor = site.server.pid
        spawner = site.server.spawner_pid
        @files = Test::Processes.open_files(supervisor).map { |name| name.sub(/\[\d+\]/, "") }.tally
        { supervisor_descriptors: Test::Processes.descriptors(supervisor), supervisor_memory: Test::Processes.proportional_memory(supervisor) >> 20,
          spawner_descriptors: spawner ? Test::Processes.descriptors(spawner) : 0 }
      end

      def look(pid, site)
        processes = Test::Processes
        { descriptors: processes.descriptors(pid), memory: processes.proportional_memory(pid) >> 20,
          connections: processes.clients(pid, site.port).size, unnamed: processes.unnamed_files(pid, site.server.path("temp")).size }
      end

      def watch
        before = @processes.keys.to_h { |pid| [pid, Test::Processes.processor_time(pid)] }
        sleep(WATCHED)
        @processes.each { |pid, figures| figures[:busy] = ((Test::Processes.processor_time(pid) - before[pid]) / WATCHED).round(2) }
      end
    end
  end
end
