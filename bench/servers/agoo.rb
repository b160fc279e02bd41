# frozen_string_literal: true

module Bench
  module Servers
    # Agoo (C). Its Rack handler fixes the number of threads, so it is started through its own interface.
    class Agoo < Server
      LAUNCHER = <<~RUBY
        require "rack"
        require "agoo"
        rackup, port, workers, threads = ARGV
        app, = Rack::Builder.parse_file(rackup)
        Agoo::Log.configure(dir: "", console: true, classic: true, states: { INFO: false })
        Agoo::Server.init(0, ".", bind: ["http://127.0.0.1:" + port], worker_count: Integer(workers), thread_count: Integer(threads))
        Agoo::Server.handle(nil, "**", app)
        Agoo::Server.start
        sleep # start has returned, and Agoo's threads serve
      RUBY

      # The first process serves too.
      def processes(shape)
        shape.workers
      end

      def dialect
        Dialect::RACK_PUSH
      end

      def command(site, port, shape)
        [RbConfig.ruby, "-e", LAUNCHER, site.rackup, port.to_s, shape.workers.to_s, shape.threads.to_s]
      end
    end
  end
end
