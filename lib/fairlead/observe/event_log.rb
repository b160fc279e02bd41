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

    def files_only(configuration)
      info("there is no #{configuration.rackup}: serving only the files in #{configuration.public_dir}")
    end

    def ready(configuration)
      host = ", port on #{configuration.default_host}" if configuration.default_host
      info("fairlead #{VERSION} ready in #{configuration.supervised? ? "cluster" : "single"} mode " \
           "(ruby #{RUBY_VERSION}, pid #{Process.pid}, #{capacity(configuration)}, #{configuration.environment}#{host})")
    end

    def warning(text) = warn("warning: #{text}")

    def start_failed(error) = warn("fairlead: #{error.message.gsub("\n", "\nfairlead: ")}")

    # --- workers

    def worker_booted(child, seconds) = info("worker #{child.slot} booted (pid #{child.pid}, #{format("%.1f", seconds)} s)")

    def worker_failed_to_boot(slot, reason) = warn("worker #{slot} cannot start: #{reason}")

    def worker_ended(child, status) = warn("worker #{child.slot} (pid #{child.pid}) ended unexpectedly: #{describe(status)}")

    def worker_boot_timed_out(child, seconds) = warn("worker #{child.slot} (pid #{child.pid}) is not ready after #{seconds} s; replacing it")

    def worker_hung(child, seconds) = warn("worker #{child.slot} (pid #{child.pid}) has shown no sign of life for #{seconds} s; replacing it")

    def worker_killed(child) = warn("worker #{child.slot} (pid #{child.pid}) did not end in time; killing it")

    def workers_wanted(count) = info("changing to #{count} #{count == 1 ? "worker" : "workers"}")

    def workers_at_limit(count) = warn("there cannot be more than #{count} workers")

    def worker_not_added(error) = warn("cannot add a worker: #{error.message}")

    def last_worker_kept = warn("the last worker cannot be removed")

    def next_attempt(seconds) = warn("workers die as soon as they start; the next one starts in #{seconds} s")

    def supervisor_gone = warn("the supervisor is gone; finishing what has arrived")

    # --- the end

    def draining(signal, seconds) = info("#{signal}: finishing what has arrived, for up to #{seconds} s")

    def drain_timed_out(seconds) = warn("some requests did not finish within #{seconds} s and were aborted")

    def stopping_at_once(signal) = info("#{signal}: stopping at once")

    def stopped = info("fairlead stopped")

    # --- while it runs

    def access_log_reopened = info("HUP: reopened the access log")

    def signal_ignored(signal) = warn("#{signal}: ignored, restarts are not supported yet")

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

    private

    def capacity(configuration)
      threads = "#{configuration.min_threads}:#{configuration.max_threads} threads"
      return threads unless configuration.supervised?

      "#{configuration.workers} #{configuration.workers == 1 ? "worker" : "workers"}, #{threads} each"
    end

    def info(text)
      write(@output, text) unless @quiet
    end

    def warn(text) = write(@errors, text)

    # If the terminal is closed or the disk is full, the message is lost and the server goes on.
    def write(stream, text)
      stream.write("#{"[#{Process.pid}] " if @prefix}#{text}\n")
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

    def describe(status)
      return "unknown status" if status == :unknown

      status.signaled? ? "killed by SIG#{Signal.signame(status.termsig)}" : "exit status #{status.exitstatus}"
    end
  end
end
