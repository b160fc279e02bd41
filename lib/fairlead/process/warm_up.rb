# frozen_string_literal: true

module Fairlead
  # The requests of the option `warm_up`, which the application gets before it serves: in the spawner before the workers are forked, or in a
  # process that loads the application for itself. They fill caches in memory that the workers then share. They pass neither the engine nor
  # its logs.
  #
  # Nothing here keeps the server from starting: errors are logged, and after `warm_up_timeout` the rest is left out. A thread makes the
  # requests, so that its locals, and with them the state of the application for this thread, end with it.
  class WarmUp
    autoload :HealthCheck, "fairlead/process/warm_up/health_check"
    autoload :Requests, "fairlead/process/warm_up/requests"

    # Number of times that each path is requested before a fork. Some caches are filled later than by the first request.
    ROUNDS = 10

    # Seconds after which no further round begins.
    ENOUGH = 2

    # Seconds in which the thread has to end after the timeout.
    GRACE = 1

    # +service+: with the loaded application.
    def initialize(service)
      @configuration = service.configuration
      @log = service.log
      @app = service.app
      @forks = @configuration.supervised? && service.preload?
      blocks, paths = @configuration.warm_up.flatten.partition { |step| step.respond_to?(:call) }
      @left = blocks + paths.flat_map { |path| path == :auto ? automatic : [path] }
      @good = []
      @round = 1
    end

    # Makes the requests.
    def run
      return if @left.empty?

      @requests = Requests.new(@app, default_origin)
      @started = Clock.now
      background = Background.current
      timers = background.timers.waiting
      background.forget_jobs { in_threads }
      timers = background.timers.waiting - timers
      @log.warm_up_timers(timers) if @forks && timers.positive?
    rescue ThreadError => e
      @log.warm_up_failed("the thread", e)
    end

    private

    # A request may kill its thread; then another thread goes on with the next step.
    def in_threads
      deadline = @started + @configuration.warm_up_timeout
      until @done
        thread = Thread.new { make_requests }
        return give_up(thread) unless thread.join([deadline - Clock.now, 0].max)

        @log.warm_up_killed(@doing) unless @done
      end
      @log.warmed_up(@requests.count, Clock.now - @started)
    end

    # The health check has no effects, by its purpose. It is only worth its time if workers share what it loads.
    def automatic
      @forks && !@configuration.development? ? [HealthCheck.path].compact : []
    end

    def default_origin = "https://#{HealthCheck.host || "localhost"}"

    def give_up(thread)
      @log.warm_up_timed_out(@configuration.warm_up_timeout, @doing, thread.backtrace.to_a)
      thread.kill.join(GRACE)
    end

    def make_requests
      Thread.current.name = "warm-up"
      while (step = next_step)
        if step.respond_to?(:call)
          attempt("its block") { step.call(@requests) }
        elsif good?(step)
          @good << step
        end
      end
      @done = true
    ensure
      disconnect if @forks
    end

    # Takes out the next block or path. Good paths come again before a fork.
    def next_step
      if @left.empty? && @round < (@forks ? ROUNDS : 1) && Clock.now - @started <= ENOUGH
        @round += 1
        @left = @good
        @good = []
      end
      @left.shift
    end

    # A path with a problem is not requested again.
    def good?(path)
      attempt(path) do
        status = @requests.get(path).status
        @log.warm_up_refused(path, status) if status >= 400
        status < 400
      end
    end

    # Returns nil if the block raises.
    def attempt(name)
      @doing = name
      yield
    rescue Exception => e # rubocop:disable Lint/RescueException -- an application that recurses too deeply, or calls exit, can still serve
      @log.warm_up_failed(name, e)
      nil
    end

    # In workers, Active Record itself opens new connections, but these would stay open in the spawner.
    def disconnect
      ForkSafety.disconnect
    rescue StandardError => e
      @log.warm_up_failed("the end of its database connections", e)
    end
  end
end
