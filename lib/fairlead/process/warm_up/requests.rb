# frozen_string_literal: true

require "stringio"
require_relative "../../rack/input"

module Fairlead
  class WarmUp
    # Makes requests to the application. A block of `warm_up` gets one:
    #
    #   warm_up { |requests| requests.post "/graphql", '{"query":"{ products { name } }"}', "content-type" => "application/json" }
    class Requests
      # In the env of each request, with the value true.
      MARK = "fairlead.warm_up"

      USER_AGENT = "Fairlead-Warm-Up"

      # Names of the env that have no HTTP_ before them.
      BARE = %w[CONTENT_TYPE CONTENT_LENGTH].freeze

      # A response; +body+ is text.
      Response = Struct.new(:status, :headers, :body)

      # The number of requests that the application has responded to.
      attr_reader :count

      # +origin+: scheme and host of requests that name a path only.
      def initialize(app, origin)
        require "uri" # not before: few servers need it
        @app = app
        @origin = URI(origin)
        @count = 0
      end

      # @param target [String] "/posts?page=1", or a URL
      # @param fields [Hash{String => String}] header fields
      # @return [Response]
      def get(target, fields = {}) = request("GET", target, fields)

      # @return [Response]
      def post(target, body = "", fields = {}) = request("POST", target, fields, body)

      # @return [Response]
      def request(verb, target, fields = {}, body = "")
        response_to(env(verb, URI.join(@origin, target), fields, body)).tap { @count += 1 }
      end

      private

      def response_to(env)
        status, headers, parts = @app.call(env)
        response = Response.new(Integer(status), headers, read(parts))
      rescue Exception => e # rubocop:disable Lint/RescueException -- the application is told of any, and it goes on
        finish(env, nil, nil, e)
        raise
      else
        finish(env, status, headers, nil)
        response
      end

      # Calls the callables that the application has left in the env: see the Rack SPEC, and `rack.after_reply` of Puma.
      def finish(env, *result)
        env["rack.response_finished"].reverse_each { |callable| callable.call(env, *result) }
        env["rack.after_reply"].each(&:call)
      end

      def env(verb, url, fields, body)
        path = url.path.b
        query = url.query.to_s.b
        fixed(url).merge(
          "REQUEST_METHOD" => verb, "PATH_INFO" => path, "QUERY_STRING" => query,
          "REQUEST_PATH" => path.dup, "REQUEST_URI" => url.request_uri.b, "rack.response_finished" => [], "rack.after_reply" => [],
          "rack.input" => body.empty? ? EMPTY_INPUT : StringIO.new(body.b), "rack.errors" => $stderr,
          **(body.empty? ? {} : { "CONTENT_LENGTH" => body.bytesize.to_s }), **of_fields(fields)
        )
      end

      def fixed(url)
        {
          "SCRIPT_NAME" => "", "SERVER_NAME" => url.host.b, "SERVER_PORT" => url.port.to_s.b, "SERVER_PROTOCOL" => "HTTP/1.1",
          "HTTP_VERSION" => "HTTP/1.1", "SERVER_SOFTWARE" => "fairlead #{VERSION}", "GATEWAY_INTERFACE" => "CGI/1.2",
          "REMOTE_ADDR" => "127.0.0.1", "HTTP_HOST" => (url.port == url.default_port ? url.host : "#{url.host}:#{url.port}").b,
          "HTTP_USER_AGENT" => USER_AGENT, "HTTP_ACCEPT" => "text/html,*/*;q=0.8", "HTTP_ACCEPT_ENCODING" => "gzip",
          "rack.version" => [1, 6], "rack.url_scheme" => url.scheme, "rack.multithread" => true, "rack.multiprocess" => true,
          "rack.run_once" => false, "rack.hijack?" => false, MARK => true, **(url.scheme == "https" ? { "HTTPS" => "on" } : {})
        }
      end

      def of_fields(fields)
        fields.to_h do |name, value|
          name = name.to_s.upcase.tr("-", "_")
          [BARE.include?(name) ? name : "HTTP_#{name}", value.to_s.b]
        end
      end

      # A body that only writes to a stream is not called.
      def read(body)
        text = "".b
        body.each { |part| text << part.b } if body.respond_to?(:each)
        text
      ensure
        body.close if body.respond_to?(:close)
      end
    end
  end
end
