# frozen_string_literal: true

module Bench
  module Servers
    # Unicorn: no threads, no keep-alive. It gets as many processes as the others have threads, so that the app can run
    # as many requests at once.
    class Unicorn < Server
      def note(shape)
        processes = shape.concurrency
        "#{processes} #{processes == 1 ? "process" : "processes"} of one thread; closes the connection after every response"
      end

      def processes(shape)
        shape.concurrency + 1
      end

      def command(site, port, shape)
        config = site.write("unicorn.rb", <<~RUBY)
          worker_processes #{shape.concurrency}
          preload_app true
          stderr_path #{File::NULL.inspect}
        RUBY
        [*executable, "-N", "-E", "production", "-c", config, "-l", "127.0.0.1:#{port}", site.rackup]
      end
    end
  end
end
