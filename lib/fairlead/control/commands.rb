# frozen_string_literal: true

module Fairlead
  module Control
    # What the control server does on request: the commands of Puma's, with its answers, and a few more. The last part of the
    # path names the command.
    class Commands
      # command => what the server is asked to do
      ASKED = {
        "stop" => :stop, "halt" => :halt, "restart" => :restart, "phased-restart" => :phased_restart, "reopen-log" => :reopen_logs,
        "reload-certificates" => :reload_certificates,
        "worker-count-up" => :add_worker, "worker-count-down" => :remove_worker, "info" => :backtraces
      }.freeze

      # The commands that change nothing.
      READING = %w[stats gc-stats status].freeze

      # +server+: has #ask and #status. +service+: the Service. +peaks+: a Peaks. +data_only+: whether only READING is allowed.
      # +certificates+: an Acme::Keeper, or nil.
      def initialize(server, service, token:, health:, peaks:, data_only: false, certificates: nil)
        @server = server
        @service = service
        @token = token
        @health = health
        @peaks = peaks
        @data_only = data_only
        @certificates = certificates
      end

      # The Response to a Request.
      def call(request) = prompt(request) || run(request.command)

      # The Response to a probe, or to a request that is not allowed, which waits for nothing; nil for a command.
      def prompt(request)
        return @health.call(request) if Health::PATHS.include?(request.path)
        return Response.text(403, @token.refusal) unless @token.allows?(request)

        command = request.command
        Response.text(404, "Command #{command.inspect} unavailable") if @data_only && !READING.include?(command)
      end

      private

      def run(command)
        return ask(ASKED.fetch(command)) if ASKED.key?(command)

        case command
        when "stats" then Response.json(puma_stats)
        when "status" then Response.json(Report.new(@server, @service, certificates: @certificates).to_h)
        when "gc" then collect_garbage
        when "gc-stats" then Response.json(GC.stat)
        when "thread-backtraces" then Response.json(Backtraces.in_form_of_puma)
        when "backtraces" then Response.json(@server.backtraces)
        when "refork" then supervised? ? ask(:refork) : unavailable(command)
        when "reload-worker-directory" then supervised? ? Response.ok : unavailable(command) # each restart does that
        else Response.text(404, "Unsupported action")
        end
      end

      def supervised? = @server.status[:workers].positive?

      def ask(what)
        @server.ask(what)
        Response.ok
      end

      def puma_stats
        PumaStats.new(@server, max_threads: @service.configuration.max_threads, peaks: @peaks.take).to_h
      end

      def collect_garbage
        GC.start
        Response.ok
      end

      def unavailable(command)
        Response.new(404, "application/json", %({ "error": "#{command.tr("-", "_")} not available" }))
      end
    end
  end
end
