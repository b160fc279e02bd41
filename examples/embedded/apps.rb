# frozen_string_literal: true

require "json"

# Counter shared by the two applications, which run in one process.
class Counter
  def initialize
    @count = 0
    @lock = Mutex.new
  end

  def up = @lock.synchronize { @count += 1 }
  def value = @lock.synchronize { @count }
end

# The application for everybody: counts its visitors.
class PublicApp
  def initialize(counter)
    @counter = counter
  end

  def call(env)
    return [404, { "content-type" => "text/plain" }, ["There is only /\n"]] unless env["PATH_INFO"] == "/"

    [200, { "content-type" => "text/plain" }, ["You are visitor #{@counter.up}\n"]]
  end
end

# The application for the operators: shows the number of visitors.
class AdminApp
  def initialize(counter)
    @counter = counter
  end

  def call(_env) = [200, { "content-type" => "application/json" }, [JSON.generate(visitors: @counter.value)]]
end

# Rack middleware that writes the program's own lines about requests, so the servers write none.
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
