# frozen_string_literal: true

module Fairlead
  module Acme
    # Sees to it that there is a certificate for each order of a Single, and that it is renewed in time. Servers with a supervisor have
    # the schedule there (crates/supervisor/src/acme), and a Clerk. Each order that is due has a thread and a Job of its own, so that one
    # which hangs delays no other. Files are read on such threads only, because a disk can hang, and nothing about them ends the server.
    class Keeper
      # The states of a server in which somebody serves, and so can answer challenges.
      SERVING = %i[ready restarting].freeze

      # Most orders that an authority gets at a time.
      AT_ONCE = 4

      # For people, as long as nothing can be ordered because of that.
      BUSY = "another process has locked the order"

      # Seconds for which #close waits for the threads. A disk that hangs may keep them longer.
      END_LIMIT = 5

      # +server+: has #ask. +service+: a Service, which is open. +jobs+: makes each Job.
      def initialize(server, service, jobs: Job)
        @server = server
        @service = service
        @log = service.log
        @store = Store.new(service.configuration.acme_dir)
        @schedules = service.configuration.acme.map { |order| Schedule.new(order, @store, log: @log) }
        @jobs = jobs
        @lock = Mutex.new
        @running = {}
      end

      # Has a thread see to what is due, unless one does so already. Called about once a second. +state+: that of the server.
      def look(state)
        return if !SERVING.include?(state) || @looking&.alive?

        @looking = thread { see_to_all }
      rescue ThreadError => e
        tell_once(e)
      end

      # Ends what runs.
      def close
        threads = @lock.synchronize do
          @closing = true
          @running.each_value { |job, _| job.stop }
          [@looking, *@running.map { |_, (_, thread)| thread }].compact
        end
        limit = RunningTime::Limit.new(END_LIMIT)
        threads.each { |thread| limit.wait { |rest| thread.join(rest) } }
        @closing = false
      end

      # For people and programs: a Hash for each order.
      def report
        @schedules.map do |schedule|
          {
            hosts: schedule.order.hosts, directory: schedule.order.directory, expires_at: schedule.certificate&.expires_at,
            next_attempt_at: schedule.at, failures: schedule.failure&.count || 0,
            error: schedule.failure&.reason || @unusable || (BUSY if schedule.busy?)
          }
        end
      end

      private

      # First the orders that have failed least.
      def see_to_all
        read_present
        return unless prepared?

        idle = @schedules.reject { |schedule| running?(schedule) }
        due, others = idle.partition(&:due?)
        due.sort_by { |schedule| schedule.failure&.count || 0 }.each { |schedule| start(schedule) if room_for?(schedule.order) }
        others.each { |schedule| ask(schedule) if schedule.ask? && room_for?(schedule.order) }
      rescue StandardError, ScriptError, NoMemoryError => e
        tell_once(e)
      end

      # The next look tries again.
      def tell_once(error)
        @log.control_failed(error) unless @told == error.message
        @told = error.message
      end

      # True if the folder can be used. Each look tries until it can.
      def prepared?
        return true if @prepared

        @store.prepare
        @unusable = nil
        @prepared = true
      rescue Error => e
        @log.acme_dir_unusable(e.message) unless @unusable == e.message
        @unusable = e.message
        false
      end

      # What is there at the start.
      def read_present
        return if @read

        @schedules.each(&:read)
        @read = true
        @schedules.each { |schedule| schedule.failure ? @log.acme_waits(schedule) : (@log.acme_present(schedule) if schedule.certificate) }
      end

      def running?(schedule) = @running[schedule]&.last&.alive?

      # The first order of an authority makes the account, on which the others depend.
      def room_for?(order)
        beside = @running.count { |schedule, (_, thread)| thread.alive? && schedule.order.directory == order.directory }
        beside < (File.exist?(@store.folder.join(*@store.account(order))) ? AT_ONCE : 1)
      end

      def start(schedule)
        present = { replaces: schedule.certificate, recalled: schedule.recalled? }
        job = @jobs.new(schedule.order, @store, challenge(schedule.order), **present, log: @log)
        run(schedule, job) { attempt(schedule, job) }
      end

      # Asks when the authority wants the certificate to be renewed.
      def ask(schedule)
        question = Question.new(schedule.order, @store, schedule.certificate)
        run(schedule, question) do
          answer = question.run
          schedule.suggest(answer) unless question.stopped?
        end
      end

      def run(schedule, job, &block)
        @lock.synchronize do
          next if @closing

          @running[schedule] = [job, thread(&block)]
        end
      end

      def thread(&block)
        Thread.new(&block).tap do |thread|
          thread.name = "fairlead acme"
          thread.thread_variable_set(:fork_safe, true)
        end
      end

      # Any authority wants HTTP-01 on port 80, and TLS-ALPN-01 on port 443; which of our listeners these are it alone knows.
      def challenge(order)
        plain = @service.listeners.any? { |listener| listener.address[:scheme] == "http" }
        order.challenge || (plain ? "http-01" : "tls-alpn-01")
      end

      def attempt(schedule, job)
        schedule.read
        return unless schedule.due?
        return succeeded(schedule) if schedule.write_held

        @server.ask(:reload_certificates) if schedule.lost? && schedule.restore
        return unless schedule.wanted?

        result = job.run { @log.acme_ordering(schedule.order, challenge(schedule.order)) }
        take(schedule, result) unless job.stopped?
      rescue StandardError => e
        failed(schedule, Problem.new("failure", Error.sum_up(e)))
      end

      def take(schedule, result)
        case result[:outcome]
        when "issued", "current" then succeeded(schedule)
        when "busy" then busy(schedule)
        else
          schedule.hold(result[:text]) if result[:text]
          failed(schedule, Problem.new(result[:type], result[:message], retry_after: result[:retry_after]))
        end
      end

      # It may take long, if the other process is frozen.
      def busy(schedule)
        @log.acme_busy(schedule, @store) unless schedule.busy?
        schedule.put_off
      end

      def succeeded(schedule)
        problem = schedule.succeeded
        @log.acme_present(schedule) if schedule.certificate
        @server.ask(:reload_certificates)
        failed(schedule, problem) if problem
      end

      def failed(schedule, problem)
        unwritten = schedule.failed(problem)
        @log.acme_failed(schedule, problem.message)
        @log.acme_failure_unwritten(schedule, unwritten) if unwritten
      end
    end
  end
end
