# frozen_string_literal: true

module Fairlead
  # The messages for the person who runs the server. Other code reports events; all wording is here. Messages go to standard
  # output, warnings and errors to standard error. Each is one write, so that the lines of several processes do not mix.
  class EventLog
    # @return [IO] where messages go, and where warnings and errors go
    attr_reader :output, :errors

    # @param quiet [Boolean] only warnings and errors
    # @param prefix [Boolean] whether each line starts with the process id
    # @param output [IO, #write, #flush] for messages
    # @param errors [IO, #write, #flush] for warnings and errors
    def initialize(quiet: false, prefix: false, output: $stdout, errors: $stderr)
      @quiet = quiet
      @prefix = prefix
      @output = output
      @errors = errors
    end

    # --- the start

    def listening(listener) = info("listening on #{listener}")

    # It was open before the start, for an address that the server does not listen on.
    def listener_unused(listener)
      hint = "; bind_to_activated_sockets would listen on it" if listener.kept?
      warn("closed #{listener}, which was passed to the server and is none of its addresses#{hint}")
    end

    def files_only(configuration)
      info("there is no #{configuration.rackup}: serving only the files in #{configuration.public_dir}")
    end

    def ready(configuration)
      threads = "#{configuration.min_threads}:#{configuration.max_threads} threads"
      threads = "#{configuration.workers} #{configuration.workers == 1 ? "worker" : "workers"}, #{threads} each" if configuration.supervised?
      host = ", port on #{configuration.default_host}" if configuration.default_host
      info("fairlead #{VERSION} ready (pid #{Process.pid}, #{threads}, #{configuration.environment}#{host})")
    end

    def warning(text) = warn("warning: #{text}")

    # +error+: an exception, or its message.
    def start_failed(error)
      text = error.is_a?(Exception) ? error.message : error
      write(@errors, "fairlead: #{text.gsub("\n", "\nfairlead: ")}", prefix: false)
    end

    # --- workers

    def worker_booted(child, seconds) = info("worker #{child.index} booted (pid #{child.pid}, #{format("%.1f", seconds)} s)")

    def worker_failed_to_boot(index, reason) = warn("worker #{index} cannot start: #{reason}")

    def worker_ended(child, status) = warn("worker #{child.index} (pid #{child.pid}) ended unexpectedly: #{describe(status)}")

    def worker_boot_timed_out(child, seconds) = warn("worker #{child.index} (pid #{child.pid}) is not ready after #{seconds} s; replacing it")

    def worker_hung(child, seconds) = warn("worker #{child.index} (pid #{child.pid}) has shown no sign of life for #{seconds} s; replacing it")

    def worker_killed(child) = warn("worker #{child.index} (pid #{child.pid}) did not end in time; killing it")

    def workers_wanted(count) = info("changing to #{count} #{count == 1 ? "worker" : "workers"}")

    def workers_at_limit(count) = warn("there cannot be more than #{count} workers")

    def worker_not_added(error) = warn("cannot add a worker: #{error.message}")

    def last_worker_kept = warn("the last worker cannot be removed")

    def next_attempt(seconds) = warn("workers die as soon as they start; the next one starts in #{seconds} s")

    def supervisor_gone = warn("the supervisor is gone; finishing what has arrived")

    # --- spawners and restarts

    def spawner_lost(generation, reason) = warn("the spawner of generation #{generation.number} is lost, starting another one: #{reason}")

    def spawner_killed(generation) = warn("the spawner of generation #{generation.number} did not end in time; killing it")

    def restart_begun(restart, generation) = info("#{restart.kind} restart: loading the new code (generation #{generation.number})")

    def refork_begun(child) = info("refork: worker #{child.index} (pid #{child.pid}) stops serving, and the others become copies of it")

    def refork_refused(reason) = warn("refork: not now, #{reason}")

    def restart_done(restart, generation) = info("#{restart.kind == :refork ? "refork" : "#{restart.kind} restart"}: done, all workers are of generation #{generation.number}")

    def restart_failed(restart, generation)
      name = restart.kind == :refork ? "refork" : "#{restart.kind} restart"
      warn("#{name}: failed, generation #{generation.number} goes on serving: #{restart.error}")
    end

    def restart_checked = info("hot restart: checking the configuration of the new code")

    def restart_refused(problem) = warn("hot restart: failed, the old code goes on serving: #{problem}")

    def restarting_hot = info("hot restart: starting the new code")

    def phased_restart_needs_workers = info("phased restart: there are no workers, so this is a hot restart")

    def needs_workers(request) = warn("#{request}: ignored, there are no workers")

    # +thread+: as of Backtraces.all.
    def backtrace(thread)
      request = ", #{thread[:request]}" if thread[:request]
      info("thread #{thread[:name]} (#{thread[:status]}#{request})\n#{thread[:backtrace].map { |line| "\t#{line}" }.join("\n")}")
    end

    # --- the end

    def draining(signal, seconds) = info("#{signal}: finishing what has arrived, for up to #{seconds} s")

    def drain_timed_out(seconds) = warn("some requests did not finish within #{seconds} s and were aborted")

    def stopping_at_once(signal) = info("#{signal}: stopping at once")

    def stopped = info("fairlead stopped")

    # --- while it runs

    def access_log_reopened = info("HUP: reopened the access log")

    def hook_failed(name, error) = warn("#{name} failed: #{trace(error)}")

    def timer_failed(error) = warn("a timer failed: #{trace(error)}")

    # +doing+: :subscribe, :unsubscribe or :publish.
    def pub_sub_engine_failed(engine, doing, error) = warn("#{engine.class}##{doing} failed: #{trace(error)}")

    def broker_lost(name, error) = warn("#{name} cannot be reached; messages are not published through it: #{Error.sum_up(error)}")

    def broker_back(name) = info("#{name} is back")

    def thread_died(name, error) = warn("[BUG] thread #{name} ended: #{trace(error)}")

    # An exception of the application, and the request in which it was raised.
    def app_failed(error, request)
      warn("error in the application#{": #{request}" if request}: #{trace(error)}")
    end

    # How a process has ended, in words. +status+: a Process::Status, or :unknown.
    def describe(status)
      return "unknown status" if status == :unknown

      status.signaled? ? "killed by SIG#{Signal.signame(status.termsig)}" : "exit status #{status.exitstatus}"
    end

    private

    def info(text)
      write(@output, text) unless @quiet
    end

    def warn(text) = write(@errors, text)

    # If the terminal is closed or the disk is full, the message is lost and the server goes on.
    def write(stream, text, prefix: @prefix)
      stream.write("#{"[#{Process.pid}] " if prefix}#{text}\n")
      stream.flush
    rescue SystemCallError, IOError
      nil
    end

    # Class, message and backtrace. The application's own #message may raise, too.
    def trace(error)
      error.full_message(highlight: false, order: :top).force_encoding(Encoding::UTF_8).scrub.chomp
    rescue StandardError => e
      "#{error.class}, whose message raised (#{e.class})\n\t#{error.backtrace&.join("\n\t")}"
    end
  end
end
