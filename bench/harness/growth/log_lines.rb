# frozen_string_literal: true

module Bench
  module Growth
    # n requests a second, each with a line in the access log: the cost of one, of one without a log, and of one while nobody reads the log.
    class LogLines
      SECONDS = 2
      CONNECTIONS = 10
      LOG = "access.log"
      PIPE = "access.pipe"

      # Arguments for a log in a file. nginx reads a file of the site, and Puma logs to its output.
      ARGUMENTS = { "fairlead" => ["--access-log"], "puma" => ["-v"], "nginx" => [] }.freeze

      def figures(target, count)
        found = {
          "request without a log, µs" => each(target, count, []),
          "request with a line in a log, µs" => each(target, count, configure(target.running, LOG))
        }
        target.running.server.name == "fairlead" ? found.merge(unread(target, count)) : found
      ensure
        FileUtils.rm_f(target.running.site.path("nginx-server.conf"))
      end

      private

      def configure(running, log)
        path = running.site.path(log)
        running.site.write("nginx-server.conf", "access_log #{path};")
        arguments = ARGUMENTS.fetch(running.server.name)
        arguments.last == "--access-log" ? [*arguments, path] : arguments
      end

      # The log is a pipe that is open and full.
      def unread(target, count)
        path = target.running.site.path(PIPE)
        File.mkfifo(path) unless File.exist?(path)
        File.open(path, File::RDWR | File::NONBLOCK) do |pipe|
          fill(pipe)
          longest = nil
          each = each(target, count, configure(target.running, PIPE)) { |measurement| longest = [longest, measurement.longest].compact.min }
          { "request while nobody reads the log, µs" => each, "longest of these, ms" => longest }
        end
      end

      def fill(pipe)
        nil until pipe.write_nonblock("x" * 4096, exception: false) == :wait_writable
      end

      # Yields each measurement.
      def each(target, count, arguments)
        target.running.with_another(arguments: arguments) do |running|
          cost = Cost.new(running.group)
          load(target, running, count)
          cost.wait_until_quiet
          cost.each(count * SECONDS) do
            found = load(target, running, count)
            yield found if block_given?
          end
        end
      end

      def load(target, running, count)
        found = target.load_tool.measure(running.url(target.path), connections: CONNECTIONS, seconds: nil, requests: count * SECONDS, rate: count)
        raise Error, "requests failed: #{found.errors}" if found.error_count.positive?

        found
      end
    end
  end
end
