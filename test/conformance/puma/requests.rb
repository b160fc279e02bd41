# frozen_string_literal: true

# Requests to Puma and Fairlead, by their names in the migration guide: one request each, or several that are sent at once.
module PumaAnswers
  HOST = "host: shop.example\r\n"
  FORM = "content-type: application/x-www-form-urlencoded\r\ncontent-length: 7\r\n"
  CHUNKED = "transfer-encoding: chunked\r\n"
  CLOSE = "connection: close\r\n"

  class << self
    # An HTTP/1.1 request that lets the server keep the connection.
    def kept(method, target, fields = "", body = "") = ["#{method} #{target} HTTP/1.1\r\n#{HOST}#{fields}\r\n#{body}"]

    # An HTTP/1.1 request that ends the connection.
    def http11(method, target, fields = "", body = "") = kept(method, target, "#{CLOSE}#{fields}", body)

    def http10(method, target, fields = "", body = "") = ["#{method} #{target} HTTP/1.0\r\n#{fields}\r\n#{body}"]

    def head(text) = ["#{text}\r\n\r\n"]
  end

  METHODS = %w[GET HEAD POST PUT PATCH DELETE OPTIONS TRACE PROPFIND].to_h { |method| ["#{method} /", http11(method, "/")] }
  STATUSES = [200, 201, 202, 204, 205, 206, 301, 304, 400, 404, 418, 422, 429, 500, 503, 599].to_h do |status|
    ["status #{status}", http11("GET", "/status/#{status}")]
  end

  VERSIONS = {
    "HTTP/1.0" => http10("GET", "/"),
    "HTTP/1.0 with a host" => http10("GET", "/", HOST),
    "HTTP/1.0 keep-alive" => [*http10("GET", "/", "#{HOST}connection: keep-alive\r\n"), *http10("GET", "/", HOST)],
    "HTTP/1.0, response without a length" => http10("GET", "/each", HOST),
    "HTTP/1.0, request body without a length" => http10("POST", "/echo", HOST, "lost"),
    "invalid: HTTP/0.9" => head("GET /"),
    "HTTP/2.0" => head("GET / HTTP/2.0\r\nhost: shop.example"),
    "HTTP/1.1 without a host" => head("GET / HTTP/1.1\r\nconnection: close"),
    "two hosts" => http11("GET", "/", "host: other.example\r\n")
  }.freeze

  CONNECTIONS = {
    "keep-alive" => kept("GET", "/"),
    "keep-alive by name" => kept("GET", "/", "connection: keep-alive\r\n"),
    "pipelined requests" => [*kept("GET", "/"), *http11("GET", "/length")],
    "keep-alive after a body" => kept("POST", "/echo", FORM, "a=1&b=2"),
    "keep-alive after a body that is not read" => kept("POST", "/", "content-length: 70000\r\n", "x" * 70_000),
    "keep-alive after chunks" => kept("POST", "/echo", CHUNKED, "3\r\na=1\r\n0\r\n\r\n"),
    "keep-alive after HEAD" => kept("HEAD", "/"),
    "keep-alive after a response without a length" => kept("GET", "/each"),
    "keep-alive after a file" => kept("GET", "/file"),
    "keep-alive after 204" => kept("GET", "/status/204"),
    "keep-alive after 304" => kept("GET", "/status/304"),
    "keep-alive after 500" => kept("GET", "/status/500"),
    "keep-alive after an exception" => kept("GET", "/raise"),
    "invalid: length of a request to keep the connection" => kept("POST", "/echo", "content-length: x\r\n"),
    "close by the application" => kept("GET", "/close")
  }.freeze

  BODIES = {
    "body with a length" => http11("POST", "/echo", FORM, "a=1&b=2"),
    "large body" => http11("POST", "/echo", "content-length: 300000\r\n", "0123456789" * 30_000),
    "body of GET" => http11("GET", "/echo", FORM, "a=1&b=2"),
    "chunked body" => http11("POST", "/echo", CHUNKED, "3\r\na=1\r\n4\r\n&b=2\r\n0\r\n\r\n"),
    "chunk extension" => http11("POST", "/echo", CHUNKED, "3;x=y\r\na=1\r\n0\r\n\r\n"),
    "trailer" => http11("POST", "/echo", CHUNKED, "3\r\na=1\r\n0\r\nx-sum: 1\r\n\r\n"),
    "expect 100-continue" => http11("POST", "/echo", "#{FORM}expect: 100-continue\r\n", "a=1&b=2"),
    "unknown expectation" => http11("POST", "/echo", "#{FORM}expect: tea\r\n", "a=1&b=2"),
    "length and chunked" => http11("POST", "/echo", "#{CHUNKED}content-length: 3\r\n", "3\r\na=1\r\n0\r\n\r\n"),
    "invalid: two lengths" => http11("POST", "/echo", "content-length: 3\r\ncontent-length: 4\r\n", "a=1"),
    "invalid: length that is no number" => http11("POST", "/echo", "content-length: 3x\r\n", "a=1"),
    "invalid: empty length" => http11("POST", "/echo", "content-length:\r\n"),
    "invalid: chunk size that is no number" => http11("POST", "/echo", CHUNKED, "z\r\na=1\r\n0\r\n\r\n"),
    "invalid: unknown coding" => http11("POST", "/echo", "transfer-encoding: tea\r\n", "a=1"),
    "gzip, then chunked" => http11("POST", "/echo", "transfer-encoding: gzip, chunked\r\n", "0\r\n\r\n"),
    "invalid: chunked twice" => http11("POST", "/echo", "#{CHUNKED}#{CHUNKED}", "0\r\n\r\n")
  }.freeze

  RESPONSES = {
    "no body" => http11("GET", "/empty"),
    "several strings" => http11("GET", "/strings"),
    "response without a length" => http11("GET", "/each"),
    "HEAD, response without a length" => http11("HEAD", "/each"),
    "length of the application" => http11("GET", "/length"),
    "HEAD, length of the application" => http11("HEAD", "/length"),
    "several values" => http11("GET", "/lists"),
    "field names" => http11("GET", "/names"),
    "control character in a value" => http11("GET", "/control"),
    "line break in a value" => http11("GET", "/split"),
    "fields of the application" => http11("GET", "/date"),
    "file" => http11("GET", "/file"),
    "HEAD, file" => http11("HEAD", "/file"),
    "streaming body" => http11("GET", "/stream"),
    "partial hijack" => http11("GET", "/hijack"),
    "full hijack" => http11("GET", "/taken"),
    "exception" => http11("GET", "/raise"),
    "exception, for a browser" => http11("GET", "/raise", "accept: text/html\r\n"),
    "early hints" => http11("GET", "/hints"),
    "HEAD, status 204" => http11("HEAD", "/status/204")
  }.freeze

  ENVS = {
    "env" => http11("GET", "/env?a=%20b&c"),
    "env of a POST" => http11("POST", "/env", FORM, "a=1&b=2"),
    "env of a chunked POST" => http11("POST", "/env", CHUNKED, "3\r\na=1\r\n0\r\n\r\n"),
    "env of HTTP/1.0" => http10("GET", "/env"),
    "env with a port" => head("GET /env HTTP/1.1\r\nhost: shop.example:8080\r\nconnection: close"),
    "env with an IPv6 host" => head("GET /env HTTP/1.1\r\nhost: [::1]:8080\r\nconnection: close"),
    "env behind a proxy with TLS" => http11("GET", "/env", "x-forwarded-proto: https\r\nx-forwarded-for: 192.0.2.1\r\n"),
    "env with repeated fields" => http11("GET", "/env", "x-a: 1\r\nx-a: 2\r\n"),
    "env with two cookies" => http11("GET", "/env", "cookie: a=1\r\ncookie: b=2\r\n"),
    "env with an underscore in a name" => http11("GET", "/env", "x_a: 1\r\n"),
    "env with both spellings of a name" => http11("GET", "/env", "x_a: 1\r\nx-a: 2\r\n"),
    "env with spaces around a value" => http11("GET", "/env", "x-a:    1   \r\n"),
    "env with a tab before a value" => http11("GET", "/env", "x-a: \t1\r\n"),
    "env with an empty value" => http11("GET", "/env", "x-a:\r\n"),
    "env with bytes beyond ASCII" => http11("GET", "/env", "x-a: gr\u00fc\u00dfe\r\n")
  }.freeze

  TARGETS = {
    "absolute target" => http11("GET", "http://shop.example/env?a"),
    "absolute target of another host" => http11("GET", "http://other.example/env"),
    "target *" => http11("OPTIONS", "*"),
    "CONNECT" => http11("CONNECT", "shop.example:443"),
    "fragment in the target" => http11("GET", "/env#part"),
    "encoded path" => http11("GET", "/%65nv"),
    "path with dots" => http11("GET", "/a/../env"),
    "path with two slashes" => http11("GET", "//env"),
    "quotes in the target" => http11("GET", "/env?a=\"<>\""),
    "bytes beyond ASCII in the target" => http11("GET", "/env?a=\u00fc"),
    "long target" => http11("GET", "/env?a=#{"x" * 20_000}")
  }.freeze

  HEADS = {
    "unknown method" => http11("BREW", "/"),
    "long value" => http11("GET", "/", "x-a: #{"x" * 90_000}\r\n"),
    "many fields" => http11("GET", "/", Array.new(120) { |i| "x-#{i}: 1\r\n" }.join),
    "invalid: folded value" => http11("GET", "/", "x-a: 1\r\n 2\r\n"),
    "invalid: line ends without CR" => ["GET / HTTP/1.1\nhost: shop.example\nconnection: close\n\n"],
    "invalid: empty lines before a request" => ["\r\n\r\n#{http11("GET", "/").first}"],
    "invalid: space before the colon" => http11("GET", "/", "x-a : 1\r\n"),
    "invalid: field without a name" => http11("GET", "/", ": 1\r\n"),
    "invalid: TLS" => head("\x16\x03\x01\x02\x00\x01\x00")
  }.freeze

  REQUESTS = { **METHODS, **VERSIONS, **CONNECTIONS, **BODIES, **RESPONSES, **STATUSES, **ENVS, **TARGETS, **HEADS }.freeze

  # Requests with responses that depend on the environment; the others are sent in production.
  DEVELOPMENT = REQUESTS.slice("exception", "exception, for a browser").transform_keys { |name| "development: #{name}" }.freeze

  # Requests with responses that depend on workers.
  WORKERS = REQUESTS.slice("keep-alive", "exception", "env").transform_keys { |name| "workers: #{name}" }.freeze

  # Requests with the same responses if `puma_env` and `trusted_proxies` are set.
  WITH_OPTIONS = REQUESTS.slice("env", "env of a POST", "env behind a proxy with TLS").transform_keys { |name| "options: #{name}" }.freeze

  JSON_TYPE = "content-type: application/json\r\n"

  # Requests to a Rails application. The client names the request, because Rails would make a random name.
  RAILS = {
    "page" => ["GET", "/page"],
    "HEAD" => ["HEAD", "/page"],
    "page that the client has" => ["GET", "/page", "if-none-match: *\r\n"],
    "query" => ["GET", "/json?a=%20b&c[]=1&c[]=2"],
    "form" => ["POST", "/json", FORM, "a=1&b=2"],
    "method in a form" => ["POST", "/json", FORM.sub("7", "14"), "_method=delete"],
    "JSON" => ["POST", "/json", "#{JSON_TYPE}content-length: 9\r\n", "{\"a\": 1}\n"],
    "JSON in chunks" => ["POST", "/json", "#{JSON_TYPE}#{CHUNKED}", "9\r\n{\"a\": 1}\n\r\n0\r\n\r\n"],
    "malformed JSON" => ["POST", "/json", "#{JSON_TYPE}content-length: 1\r\n", "{"],
    "cookies" => ["GET", "/cookies"],
    "204" => ["GET", "/nothing"],
    "redirection" => ["GET", "/back"],
    "condition that holds" => ["GET", "/fresh", "if-modified-since: Thu, 01 Jan 2026 00:00:00 GMT\r\n"],
    "condition that does not hold" => ["GET", "/fresh", "if-modified-since: Wed, 01 Jan 2025 00:00:00 GMT\r\n"],
    "pieces" => ["GET", "/pieces"],
    "live stream" => ["GET", "/live"],
    "data" => ["GET", "/data"],
    "download" => ["GET", "/download"],
    "HEAD, download" => ["HEAD", "/download"],
    "range of a download" => ["GET", "/download", "range: bytes=2-5\r\n"],
    "range that there is not" => ["GET", "/download", "range: bytes=99-\r\n"],
    "no route" => ["GET", "/nowhere"],
    "wrong method" => ["DELETE", "/page"],
    "exception" => ["GET", "/fail"]
  }.to_h { |name, (method, target, fields, body)| ["rails: #{name}", kept(method, target, "x-request-id: 1\r\n#{fields}", body.to_s)] }.freeze
end
