# frozen_string_literal: true

module Fairlead
  module Test
    # A plugin like the ones that run a job queue beside the server: it forks when the server is ready, watches its child in
    # the background and ends the server with it, stops it with the server, and its child ends itself when the server is
    # gone.
    QUEUE_PLUGIN = <<~RUBY
      require "puma/plugin"

      module Puma
        class DSL
          def queue_mode(mode)
            @options[:queue_mode] = mode.to_sym
          end
        end
      end

      Puma::Plugin.create do
        attr_reader :puma_pid, :queue_pid, :log_writer

        def config(dsl)
          dsl.tag "by the plugin"
          dsl.max_threads 2
        end

        def start(launcher)
          @log_writer = launcher.log_writer
          @puma_pid = $$
          log_writer.log "queue: mode \#{launcher.options[:queue_mode]}, control \#{launcher.options[:control_url]}"
          launcher.events.after_booted do
            in_background { monitor { queue_dead? } }
            @queue_pid = fork do
              Thread.new { monitor { Process.ppid != puma_pid } }
              trap(:INT) { exit! }
              log_writer.log "queue: started \#{$$}"
              sleep
            end
          end
          launcher.events.after_stopped { stop_queue }
          launcher.events.before_restart { stop_queue }
        end

        def stop_queue
          log_writer.log "queue: stopped \#{queue_pid}" if Process.kill(:INT, queue_pid)
          Process.wait(queue_pid) # unless the monitor has seen its end already
        rescue Errno::ECHILD, Errno::ESRCH
          nil
        end

        def monitor
          sleep 0.02 until yield
          Process.kill(:INT, $$)
        end

        def queue_dead?
          Process.waitpid(queue_pid, Process::WNOHANG) if queue_pid
          false
        rescue Errno::ECHILD, Errno::ESRCH
          true
        end
      end
    RUBY
  end
end
