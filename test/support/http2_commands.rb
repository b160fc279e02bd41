# frozen_string_literal: true

require "json"
require "open3"
require_relative "servers"

module Fairlead
  module Test
    # For test cases that talk HTTP/2 to servers without TLS, with programs that speak it: curl, nghttp and Node.
    module Http2Commands
      include Servers

      # Longest time for a program, in seconds.
      SECONDS = 30

      # A response from curl; +fields+: the head as text.
      Answer = Struct.new(:status, :version, :fields, :body) do
        def [](name) = fields[/^#{name}: (.*?)\r?$/i, 1]
      end

      # Sends a request with curl.
      def curl(server, path = "/", *options)
        body = server.path("body-#{path.hash.abs}")
        format = "%{http_code} %{http_version}"
        output = run_command("curl", "--silent", "--http2-prior-knowledge", "--max-time", SECONDS.to_s, "--dump-header", "-",
                             "--output", body, "-w", "\n#{format}", *options, "http://127.0.0.1:#{server.port}#{path}")
        *head, last = output.lines
        Answer.new(Integer(last.split.first, 10), last.split.last, head.join, File.exist?(body) ? File.binread(body) : "")
      end

      # Returns the output of nghttp, which continues after a failed request. One path for each request, all on one
      # connection.
      def nghttp(server, *paths, options: [])
        need("nghttp")
        run_command("nghttp", *options, *paths.map { |path| "http://127.0.0.1:#{server.port}#{path}" })
      end

      # Returns the output of a program for Node, parsed as JSON. The program finds its connection in `session`, and
      # `ask(path, fields, body)` yields [status, fields, body].
      def node(server, program)
        need("node")
        JSON.parse(run_command("node", "-e", NODE + program, "http://127.0.0.1:#{server.port}"))
      end

      # As above, while the block runs; returns the output of the program after the block.
      def node_meanwhile(server, program, &block)
        thread = Thread.new { node(server, program) }
        thread.report_on_exception = false
        block.call
        thread.value
      end

      NODE = <<~'JS'
        const http2 = require("http2"), base = process.argv[1]
        setTimeout(() => process.exit(1), 25000).unref()
        const session = http2.connect(base)
        const ask = (path, fields = {}, body = undefined, on = session) => new Promise((done, failed) => {
          const stream = on.request({ ":path": path, ":method": body === undefined ? "GET" : "POST", ...fields }, { endStream: body === undefined })
          const pieces = []
          let head = {}
          stream.on("response", fields => head = fields)
          stream.on("data", piece => pieces.push(piece))
          stream.on("end", () => done([head[":status"], head, Buffer.concat(pieces).toString("latin1")]))
          stream.on("error", failed)
          if (body !== undefined) stream.end(body)
        })
        const say = value => { console.log(JSON.stringify(value)); process.exit(0) }
        process.on("unhandledRejection", error => { console.error(error); process.exit(1) })
      JS

      private

      def run_command(*command)
        output, errors, = Open3.capture3("timeout", SECONDS.to_s, *command)
        flunk "#{command.first}: #{errors}" if output.empty?
        output
      end

      def need(program)
        skip "#{program} is not installed" unless system("command -v #{program} >/dev/null")
      end
    end
  end
end
