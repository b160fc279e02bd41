# frozen_string_literal: true

require "json"

# What the program serves. Both applications are in one process, so they can share what is in its memory: here a counter.
class Counter
  def initialize
    @count = 0
    @lock = Mutex.new
  end

  def up = @lock.synchronize { @count += 1 }
  def value = @lock.synchronize { @count }
end

# For everybody: counts its visitors.
class PublicApp
  def initialize(counter)
    @counter = counter
  end

  def call(env)
    return [404, { "content-type" => "text/plain" }, ["There is only /\n"]] unless env["PATH_INFO"] == "/"

    [200, { "content-type" => "text/plain" }, ["You are visitor #{@counter.up}\n"]]
  end
end

# For those who run the program: tells how many visitors there were.
class AdminApp
  def initialize(counter)
    @counter = counter
  end

  def call(_env) = [200, { "content-type" => "application/json" }, [JSON.generate(visitors: @counter.value)]]
end

# Rack middleware: the program writes its own lines about requests, so its servers write none.
class RequestLog
  def initialize(app, logger)
    @app = app
    @logger = logger
  end

  def call(env)
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    status, * = response = @app.call(env)
    took = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
    @logger.info(format("%s %s: %d in %.1f ms", env["REQUEST_METHOD"], env["PATH_INFO"], status, took * 1000))
    response
  end
end
