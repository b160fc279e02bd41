# frozen_string_literal: true

module Bench
  module Servers
    # WEBrick without logs. It has no thread pool: each connection gets a thread.
    class Webrick < Server
      LAUNCHER = <<~RUBY
        require "webrick"
        begin
          require "rackup"
          handler = Rackup::Handler.get("webrick")
        rescue LoadError
          require "rack"
          handler = Rack::Handler.get("webrick")
        end
        app, = Rack::Builder.parse_file(ARGV[0])
        trap(:TERM) { handler.shutdown }
        handler.run(app, Host: "127.0.0.1", Port: Integer(ARGV[1]), AccessLog: [], Logger: WEBrick::Log.new(File::NULL))
      RUBY

      def runs?(shape, _scenario)
        shape.single?
      end

      def note(_shape)
        "a thread for each connection, regardless of `-t`; Nagle's algorithm costs it 40 ms a request"
      end

      def command(site, port, _shape)
        [RbConfig.ruby, "-e", LAUNCHER, site.rackup, port.to_s]
      end
    end
  end
end
