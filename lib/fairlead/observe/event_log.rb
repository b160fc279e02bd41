# frozen_string_literal: true

module Fairlead
  # The messages for the operator. Other code reports events; all wording is here. A message has one of the levels debug, info,
  # warn and error, and the name of its event, which is the name of the method here. The writer decides about its destination
  # and form: lines of text (event_log/text.rb), of JSON (event_log/json.rb), or a Logger (event_log/logger.rb).
  class EventLog
    autoload :Factory, "fairlead/observe/event_log/factory"
    autoload :Levels, "fairlead/observe/event_log/levels"
    autoload :Certificates, "fairlead/observe/event_log/certificates"
    autoload :Text, "fairlead/observe/event_log/text"
    autoload :Json, "fairlead/observe/event_log/json"
    autoload :Logger, "fairlead/observe/event_log/logger"

    include Levels
    include Certificates
    extend Factory

    # The formats of lines, and their writers.
    FORMATS = { text: :Text, json: :Json }.freeze

    # @param quiet [Boolean] no messages of the level info
    # @param debug [Boolean] also messages of the level debug
    # @param prefix [Boolean] whether each line of text starts with the process id
    # @param output [IO, #write, #<<] for debug and info
    # @param errors [IO, #write, #<<] for warnings and errors
    # @param format [:text, :json] of the lines
    # @param formatter [#call, nil] makes a line of a text, without the process id
    # @param logger [#info, #write, #<<, nil] replaces both streams
    def initialize(quiet: false, debug: false, prefix: false, output: $stdout, errors: $stderr, format: :text, formatter: nil, logger: nil)
      @quiet = quiet
      @debug = debug
      @output = output unless logger
      @errors = errors unless logger
      output = errors = logger if logger
      @writer = if logger && Logger.suits?(logger)
                  Logger.new(logger, formatter: formatter)
                else
                  self.class.const_get(FORMATS.fetch(format)).new(output, errors, prefix: prefix, formatter: formatter)
                end
    end

    # The streams for lines; nil if a logger gets them.
    attr_reader :output, :errors

    # True if messages of the level debug are wanted.
    def debug? = @debug

    # True if another program can write the same lines to the standard streams.
    def plain? = @writer.plain?

    # The descriptors to which the engine may write its own lines: request lines, and lines about problems. nil if they have to
    # go through #request_served and #engine_failed.
    def request_fd = @writer.request_fd
    def error_fd = @writer.error_fd

    # --- the start

    def listening(listener) = info("listening on #{listener}")

    # It was open before the start, for an address on which the server does not listen.
    def listener_unused(listener)
      hint = "; bind_to_activated_sockets would listen on it" if listener.kept?
      warn("closed #{listener}, which was passed to the server and is none of its addresses#{hint}")
    end

    # +limit+: of the system.
    def backlog_short(wanted, limit)
      warning("backlog is #{wanted}, but the system lets only #{limit} connections wait; raise net.core.somaxconn, or lower backlog")
    end

    def files_only(configuration)
      info("there is no #{configuration.rackup}: serving only the files in #{configuration.public_dir}")
    end

    # For the log of the supervisor, which has the id +pid+.
    def ready_text(configuration, pid:)
      host = ", port on #{configuration.default_host}" if configuration.default_host
      "fairlead #{VERSION} ready in #{configuration.supervised? ? "cluster" : "single"} mode " \
        "(ruby #{RUBY_VERSION}, pid #{pid}, #{capacity(configuration)}, #{quota}#{configuration.environment}#{host})"
    end

    def configuration(configuration) = info("configuration:\n#{Configuration::Report.new(configuration)}".chomp)

    def warning(text) = warn("warning: #{text}")

    def start_failed(error) = problem("fairlead: #{error.message.gsub("\n", "\nfairlead: ")}")

    def control_listening(url) = info("control server on #{url}")

    def health_listening(url) = info("health endpoints on #{url}")

    # +error+: a BindError.
    def publish_socket_refused(error)
      warn("warning: processes beside the server cannot publish through it: #{error.message} (publish_socket)")
    end

    def control_open(url) = warn("warning: the control server on #{url} takes commands from everybody who reaches it: there is no token")

    def certificates_reloaded(location) = info("certificates reloaded for #{location}")

    def certificates_refused(location, reason)
      warn("certificates not reloaded for #{location}, the former ones stay: #{reason}")
    end

    def certificates_missing(location, reason)
      warn("no certificate for #{location}, where no handshake succeeds until its files can be used: #{reason}")
    end

    def certificates_unwatched(error) = warn("the files of certificates cannot be watched (#{error.message}); trying again")

    # --- before the server is ready

    def warmed_up(count, seconds) = info("warmed up with #{count} #{count == 1 ? "request" : "requests"} in #{seconds.round(2)} s")

    # +step+: a path, or a part of the work.
    def warm_up_failed(step, error) = warn("warm_up: #{step} failed: #{trace(error)}")

    def warm_up_refused(path, status) = warn("warm_up: #{path} responded with status #{status}, so it warms up little")

    def warm_up_timed_out(seconds, step, backtrace)
      lines = Backtraces.lines(backtrace.first(Backtraces::LONGEST)).map { |line| "\n\t#{line}" }
      warn("warm_up: #{step} did not end within #{seconds} s; going on without the rest:#{lines.join}")
    end

    # +step+: as above.
    def warm_up_killed(step) = warn("warm_up: #{step} has killed its thread; going on with the next request")

    # They were started in the spawner.
    def warm_up_timers(count)
      timers = count == 1 ? "1 timer" : "#{count} timers"
      warn("warm_up: its requests have started #{timers} of Fairlead, which will run in each worker (see docs/guides/boot.md)")
    end

    # +names+: of threads and timers.
    def missing_in_workers(names)
      warn("not in the workers, because a fork copies no threads: #{list(names)}; start them in before_worker_boot, " \
           "or mark threads that start again with thread_variable_set(:fork_safe, true) (see docs/guides/fork_safety.md)")
    end

    # In a spawner.
    def room_lost
      warn("the application has dropped most of the objects that it has made before the fork, so workers would collect garbage too often: " \
           "start the server with #{SharedHeap::FREES}=1 in its environment (see docs/guides/boot.md)")
    end

    # +peers+: addresses at the other ends of connections.
    def refork_off(peers)
      warn("no refork will begin by itself, because all workers share a connection to #{list(peers)}, and the end of one would close it; " \
           "close it in before_fork, and open it in before_worker_boot (see docs/guides/fork_safety.md)")
    end

    # --- the supervisor

    def supervisor_gone = warn("the supervisor is gone; finishing open requests")

    # +thread+: as of Backtraces.all.
    def backtrace(thread)
      request = ", #{thread[:request]}" if thread[:request]
      info("thread #{thread[:name]} (#{thread[:status]}#{request})\n#{thread[:backtrace].map { |line| "\t#{line}" }.join("\n")}")
    end

    # +env+: of a request that runs longer than its timeout.
    def request_late(env, backtrace)
      lines = Backtraces.lines(backtrace.first(Backtraces::LONGEST)).map { |line| "\n\t#{line}" }
      warn("#{Backtraces.request(env)} still runs after its timeout:#{lines.join}")
    end

    def late_requests_left_out(count) = warn("#{count} more requests still run after their timeouts")

    # +error+: a ThreadError or SystemCallError.
    def late_requests_unwatched(error) = warn("no thread can log the backtraces of late requests (#{error.message})")

    # --- the end

    # +error+: a ThreadError.
    def drain_without_thread(error) = warn("no thread can wait for the requests (#{error.message}): signals are handled after them")

    def drain_timed_out(seconds) = warn("some requests did not finish within #{seconds} s and were aborted")

    # +env+: of a request that still runs when the server ends. The application may have changed any value.
    def request_aborted(env)
      warn("aborted #{Backtraces.request(env)}: it was still running")
    end

    def waiting_requests_aborted(count) = warn("aborted #{count} #{count == 1 ? "request" : "requests"} that still waited for a thread")

    def stopped = info("fairlead stopped")

    # --- while it runs

    # +names+: "the access log", "standard output" and the like.
    def logs_reopened(names) = info("reopened #{names.join(" and ")}")

    def log_not_reopened(path, error) = warn("cannot reopen #{path}, so the old file is used: #{Error.reason(error)}")

    # A line of the supervisor, for a log that only Ruby can write.
    def pass_on(level, event, text) = @writer.write(level.to_sym, event, SystemText.shown(text))

    # A message of a plugin.
    def plugin(text) = info(text)

    def plugin_failed(name, error) = problem("plugin: #{name} failed: #{trace(error)}")

    # The part that looks after certificates has raised.
    def control_failed(error) = problem("control: #{trace(error)}")

    def hook_failed(name, error) = problem("#{name} failed: #{trace(error)}")

    def hook_exited(name, status) = problem("#{name} called exit (status #{status})")

    def timer_failed(error) = problem("a timer failed: #{trace(error)}")

    # +doing+: :subscribe, :unsubscribe or :publish.
    def pub_sub_engine_failed(engine, doing, error) = problem("#{engine.class}##{doing} failed: #{trace(error)}")

    def server_lost(error) = problem(error.message)

    def server_back(path, lost) = info("the server on #{path} is back; #{lost} #{lost == 1 ? "message was" : "messages were"} lost")

    def workers_missed(path, count) = warn("the server on #{path}: #{count} #{count == 1 ? "worker" : "workers"} did not take a message in time")

    def broker_lost(name, error) = warn("#{name} cannot be reached; messages are not published through it: #{Error.sum_up(error)}")

    def broker_refused(name, channel, error)
      warn("#{name} does not permit the subscription to #{channel.inspect}; its messages do not arrive here: #{Error.sum_up(error)}")
    end

    def broker_back(name, seconds, lost) = info("#{name} is back after #{seconds.round(1)} s; this process lost #{lost} publications")

    # +counts+: of the process, see PubSub::Broker#statistics.
    def broker_loses(name, reason, counts)
      warn("messages of #{name} are lost: #{reason}; so far #{counts[:lost]} publications of this process, and #{counts[:missed]} messages for it")
    end

    def thread_not_replaced(error)
      problem("cannot start a thread in place of one that has ended (#{error.message}); trying again until it succeeds")
    end

    def thread_died(name, error) = problem("[BUG] thread #{name} ended: #{trace(error)}")

    # By Thread#kill or Thread.exit; the thread cannot tell if a request has called it.
    def thread_killed(name) = warn("thread #{name} was killed; another one takes its place")

    def thread_killed_at_start(name) = warn("thread #{name} was killed by before_thread_start; another one takes its place")

    # An exception of the application, and the request in which it was raised.
    def app_failed(error, request)
      problem("error in the application#{": #{request}" if request}: #{trace(error)}")
    end

    # --- clients that move to another process; each line once for a handler

    def handler_nameless = warn("clients with a handler of an anonymous class cannot move to another process; give the class a constant")

    def handover_too_large(name, bytes)
      warn("a client of #{name} cannot move to another process: its state and its request have #{bytes} bytes, and may have #{Handover::LARGEST}")
    end

    def handler_missing(name) = warn("clients of #{name} cannot be taken over: there is no such class any more")

    def handler_without_takeover(name) = warn("clients of #{name} cannot be taken over: #{name}.on_takeover is missing")

    def handover_unknown = warn("a client cannot be taken over: another version of Fairlead has written its state")

    # A line of the access log, if it has no descriptor.
    def request_served(line) = write(:info, line)

    # A line of the engine about a problem, if there is no descriptor for it.
    def engine_failed(line) = line.start_with?("[BUG]") ? problem(line) : warn(line)

    # --- in detail

    # The options that were set, and their sources.
    def configured(configuration)
      debug do
        given = Options.settings.select { |option| configuration.given?(option.name) }
        texts = given.map { |option| "#{option.name} is #{option.format(configuration[option.name])} (#{configuration.origin(option.name)})" }
        "configuration: #{texts.join("; ")}"
      end
    end

    def thread_serves(name) = debug { "thread #{name} serves" }

    def thread_ends(name) = debug { "thread #{name} ends" }

    private

    # The longest list of things in one line.
    LONGEST_LIST = 10
    private_constant :LONGEST_LIST

    def list(names)
      others = names.size - LONGEST_LIST
      [*names.first(LONGEST_LIST), *("#{others} more" if others.positive?)].join(", ")
    end

    def capacity(configuration)
      threads = "#{configuration.min_threads}:#{configuration.max_threads} threads"
      return threads unless configuration.supervised?

      "#{configuration.workers} #{configuration.workers == 1 ? "worker" : "workers"}, #{threads} each"
    end

    # Of a container or a service, if it is less than the machine has.
    def quota
      quota = Options::Processors.quota
      "CPU quota #{quota.round(2)}, " if quota && quota < Etc.nprocessors
    end

    # Class, message and backtrace. The application's own #message may raise, too.
    def trace(error)
      error.full_message(highlight: false, order: :top).force_encoding(Encoding::UTF_8).scrub.chomp
    rescue StandardError => e
      "#{error.class}, whose message raised (#{e.class})\n\t#{error.backtrace&.join("\n\t")}"
    end
  end
end
