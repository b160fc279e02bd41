# frozen_string_literal: true

require "time"

module Fairlead
  module Control
    # What `/status` says: the state of the server and its processes, the last restart, what each process counts, and how
    # long requests have waited.
    class Report
      # What is shown of the counters of a process.
      COUNTERS = %i[connections requests queued threads busy_threads clients].freeze

      # +server+: has #status. +certificates+: an Acme::Keeper, or nil.
      def initialize(server, service, counts: Stats.to_h, certificates: nil)
        @status = server.status
        @service = service
        @counts = counts
        @certificates = certificates
      end

      # What JSON.generate takes.
      def to_h
        {
          version: VERSION, **@status.slice(:pid, :state, :generation), started_at: time(@status[:started_at]),
          addresses: @service.listeners.map(&:to_s), restart: restart(@status[:restart]), workers: @status[:workers],
          max_threads: @service.configuration.max_threads, waits: @counts[:waits], **acme, **processes
        }
      end

      private

      def processes
        return { counters: counters(@counts[:engines].first) } if @status[:workers].zero?

        { waiting_room: @counts[:room], worker_status: @status[:children].map { |child| worker(child) } }
      end

      def acme
        return {} unless @certificates

        { acme: @certificates.report.map { |order| order.transform_values { |value| value.is_a?(Time) ? time(value) : value } } }
      end

      def restart(restart)
        restart&.merge(at: time(restart[:at]))
      end

      def worker(child)
        counts = @counts.fetch(:workers, []).find { |counted| counted[:slot] == child[:slot] }
        { **child, started_at: time(child[:started_at]), counters: counters(counts) }
      end

      def counters(counts) = counts&.slice(*COUNTERS)

      def time(time) = time.getutc.iso8601(3)
    end
  end
end
