# frozen_string_literal: true

module Fairlead
  module Acme
    # Sees to it that there is a certificate for each order, and that it is renewed in time. It lives in the supervisor, or in
    # the only process, and runs one Job at a time.
    class Keeper
      # The states of a server in which somebody serves, and so can answer challenges.
      SERVING = %i[ready restarting].freeze

      # +server+: has #ask. +service+: a Service, which is open. Raises Error if nothing can be kept.
      # +jobs+: makes each Job.
      def initialize(server, service, jobs: Job)
        @server = server
        @service = service
        @log = service.log
        @store = Store.new(service.configuration.acme_dir)
        @store.prepare
        @schedules = service.configuration.acme.map { |order| Schedule.new(order, @store) }
        @jobs = jobs
        @lock = Mutex.new
      end

      # Starts what is due, unless something has been started and runs. Called about once a second. +state+: that of the server.
      def look(state)
        return unless SERVING.include?(state)

        tell_of_present
        @thread = start if !@thread&.alive? && @schedules.any?(&:due?)
      end

      # Ends what runs.
      def close
        @lock.synchronize do
          @closing = true
          @job&.stop
        end
        @thread&.join
      end

      # For people and programs: a Hash for each order.
      def report
        @schedules.map do |schedule|
          {
            hosts: schedule.order.hosts, directory: schedule.order.directory, expires_at: schedule.certificate&.expires_at,
            next_attempt_at: schedule.at, failures: schedule.failure&.count || 0, error: schedule.failure&.reason
          }
        end
      end

      private

      # What is there at the start.
      def tell_of_present
        return if @told

        @told = true
        @schedules.each { |schedule| schedule.failure ? @log.acme_waits(schedule) : (@log.acme_present(schedule) if schedule.certificate) }
      end

      # One after the other, on a thread that ends when nothing is due.
      def start
        @closing = false
        Thread.new { work }.tap do |thread|
          thread.name = "fairlead acme"
          thread.thread_variable_set(:fork_safe, true)
        end
      end

      def work
        while (schedule = next_due)
          attempt(schedule)
        end
      end

      def next_due = (@schedules.find(&:due?) unless @closing)

      # Any authority wants HTTP-01 on port 80, and TLS-ALPN-01 on port 443; which of our listeners these are it alone knows.
      def challenge(order)
        plain = @service.listeners.any? { |listener| listener.address[:scheme] == "http" }
        order.challenge || (plain ? "http-01" : "tls-alpn-01")
      end

      def attempt(schedule)
        schedule.read
        return unless schedule.due?

        @log.acme_ordering(schedule, challenge(schedule.order))
        job = start_job(schedule) or return
        result = job.run
        take(schedule, result) unless job.stopped?
      rescue StandardError => e # the folder cannot be written to
        schedule.put_off
        @log.acme_failed(schedule, Error.sum_up(e))
      end

      def start_job(schedule)
        @lock.synchronize { @job = @jobs.new(schedule.order, @store.folder.path, challenge(schedule.order)) unless @closing }
      end

      def take(schedule, result)
        case result[:outcome]
        when "issued", "current" then succeeded(schedule)
        when "busy" then schedule.put_off
        else failed(schedule, Problem.new(result[:type], result[:message], retry_after: result[:retry_after]))
        end
      end

      # What the authority has issued may be about to end, by its clock or ours; it is not asked again and again for that.
      def succeeded(schedule)
        schedule.succeeded
        schedule.put_off(Failure::FIRST) if schedule.due?
        @log.acme_present(schedule) if schedule.certificate
        @server.ask(:reload_certificates)
      end

      def failed(schedule, problem)
        schedule.failed(problem)
        @log.acme_failed(schedule, problem.message)
      end
    end
  end
end
