# frozen_string_literal: true

# Malformed requests, each with the status of the response and the violation in the log. They are grouped by mistake; every
# one of them has been accepted by some server.
module MalformedRequests
  # One request, with the expected refusal.
  Row = Struct.new(:name, :bytes, :status, :misdeed)

  GET = "GET / HTTP/1.1\r\n"
  HOST = "host: a\r\n"
  POST = "POST / HTTP/1.1\r\n#{HOST}".freeze
  CHUNKED = "#{POST}transfer-encoding: chunked\r\n\r\n".freeze

  REQUEST_LINES = {
    "a method with a space before it" => [" GET / HTTP/1.1\r\n#{HOST}\r\n", 400, "invalid method"],
    "a method with a bracket" => ["GE[T / HTTP/1.1\r\n#{HOST}\r\n", 400, "invalid method"],
    "a method beyond ASCII" => ["G\xC3\x89T / HTTP/1.1\r\n#{HOST}\r\n", 400, "invalid method"],
    "no method" => ["/ HTTP/1.1\r\n#{HOST}\r\n", 400, "invalid method"],
    "two spaces before the target" => ["GET  / HTTP/1.1\r\n#{HOST}\r\n", 400, "invalid request target"],
    "two spaces behind the target" => ["GET /  HTTP/1.1\r\n#{HOST}\r\n", 400, "invalid HTTP version"],
    "a tab between the parts" => ["GET\t/\tHTTP/1.1\r\n#{HOST}\r\n", 400, "invalid method"],
    "a space in the target" => ["GET /a b HTTP/1.1\r\n#{HOST}\r\n", 400, "invalid HTTP version"],
    "a space at the end of the line" => ["GET / HTTP/1.1 \r\n#{HOST}\r\n", 400, "invalid HTTP version"],
    "a target beyond ASCII" => ["GET /\xC3\xA4 HTTP/1.1\r\n#{HOST}\r\n", 400, "invalid request target"],
    "a target without a slash" => ["GET index.html HTTP/1.1\r\n#{HOST}\r\n", 400, "invalid request target"],
    "an asterisk for GET" => ["GET * HTTP/1.1\r\n#{HOST}\r\n", 400, "invalid request target"],
    "a fragment" => ["GET /a#b HTTP/1.1\r\n#{HOST}\r\n", 400, "fragment in request target"],
    "user information in the target" => ["GET http://u@a/ HTTP/1.1\r\n#{HOST}\r\n", 400, "invalid request target"],
    "a NUL in the target" => ["GET /\0 HTTP/1.1\r\n#{HOST}\r\n", 400, "NUL byte"],
    "a control character in the target" => ["GET /\e[31m HTTP/1.1\r\n#{HOST}\r\n", 400, "control character"],
    "a bare CR in the request line" => ["GET /\rx HTTP/1.1\r\n#{HOST}\r\n", 400, "bare carriage return"],
    "HTTP/0.9" => ["GET /\r\n", 400, "invalid HTTP version"],
    "HTTP/0.9 spelt out" => ["GET / HTTP/0.9\r\n\r\n", 400, "invalid HTTP version"],
    "a version in lower case" => ["GET / http/1.1\r\n#{HOST}\r\n", 400, "invalid HTTP version"],
    "a version with two digits" => ["GET / HTTP/1.10\r\n#{HOST}\r\n", 400, "invalid HTTP version"],
    "a version without minor" => ["GET / HTTP/1\r\n#{HOST}\r\n", 400, "invalid HTTP version"],
    "another protocol" => ["SSH-2.0-OpenSSH_9.6\r\n", 400, "invalid method"],
    "a method of 65 bytes" => ["#{"A" * 65} / HTTP/1.1\r\n#{HOST}\r\n", 501, "method too long"],
    "a method without end" => ["A" * 80_000, 501, "method too long"],
    "HTTP/2 by name" => ["GET / HTTP/2.0\r\n#{HOST}\r\n", 505, "unsupported HTTP version"],
    "nearly the preface of HTTP/2" => ["PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n", 505, "unsupported HTTP version"],
    "CONNECT" => ["CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\n", 501, "unsupported method"],
    "two empty lines before the request" => ["\r\n\r\n#{GET}#{HOST}\r\n", 400, "repeated empty line before the request"],
    "a bare LF before the request" => ["\n#{GET}#{HOST}\r\n", 400, "bare line feed"]
  }.freeze

  FIELDS = {
    "a bare LF behind the request line" => ["GET / HTTP/1.1\n#{HOST}\r\n", 400, "bare line feed"],
    "a bare LF behind a field" => ["#{GET}host: a\nx: y\r\n\r\n", 400, "bare line feed"],
    "a bare LF at the end" => ["#{GET}#{HOST}\n", 400, "bare line feed"],
    "a bare CR in a value" => ["#{GET}#{HOST}x: a\rb\r\n\r\n", 400, "bare carriage return"],
    "a bare CR in a name" => ["#{GET}#{HOST}x\ry: a\r\n\r\n", 400, "bare carriage return"],
    "CR CR LF" => ["#{GET}#{HOST}x: a\r\r\n\r\n", 400, "bare carriage return"],
    "a NUL in a value" => ["#{GET}#{HOST}x: a\0b\r\n\r\n", 400, "NUL byte"],
    "a NUL in a name" => ["#{GET}#{HOST}x\0: a\r\n\r\n", 400, "NUL byte"],
    "a control character in a value" => ["#{GET}#{HOST}x: a\x08\r\n\r\n", 400, "control character"],
    "DEL in a value" => ["#{GET}#{HOST}x: a\x7F\r\n\r\n", 400, "control character"],
    "a folded value" => ["#{GET}#{HOST}x: a\r\n b\r\n\r\n", 400, "obsolete line folding"],
    "a value folded with a tab" => ["#{GET}#{HOST}x: a\r\n\tb\r\n\r\n", 400, "obsolete line folding"],
    "a space before the first field" => ["#{GET} x: y\r\n#{HOST}\r\n", 400, "space before the first field"],
    "a space before the colon" => ["#{GET}#{HOST}x : a\r\n\r\n", 400, "space before colon"],
    "a tab before the colon" => ["#{GET}#{HOST}content-length\t: 5\r\n\r\n", 400, "space before colon"],
    "an empty name" => ["#{GET}#{HOST}: a\r\n\r\n", 400, "invalid field name"],
    "no colon" => ["#{GET}#{HOST}x\r\n\r\n", 400, "invalid field name"],
    "a name with a space" => ["#{GET}#{HOST}x y: a\r\n\r\n", 400, "invalid field name"],
    "a name beyond ASCII" => ["#{GET}#{HOST}x\xC3\xA4: a\r\n\r\n", 400, "invalid field name"],
    "a name with a slash" => ["#{GET}#{HOST}x/y: a\r\n\r\n", 400, "invalid field name"],
    "no host" => ["#{GET}\r\n", 400, "missing host"],
    "two hosts" => ["#{GET}#{HOST}#{HOST}\r\n", 400, "repeated host"],
    "an empty host" => ["#{GET}host:\r\n\r\n", 400, "invalid host"],
    "a host with user information" => ["#{GET}host: u@a\r\n\r\n", 400, "invalid host"],
    "a host with a path" => ["#{GET}host: a/b\r\n\r\n", 400, "invalid host"],
    "a list of hosts" => ["#{GET}host: a, b\r\n\r\n", 400, "invalid host"],
    "a port beyond all ports" => ["#{GET}host: a:65536\r\n\r\n", 400, "invalid host"],
    "an invalid host beside an absolute target" => ["GET http://b/ HTTP/1.1\r\nhost: a, b\r\n\r\n", 400, "invalid host"],
    "two hosts beside an absolute target" => ["GET http://b/ HTTP/1.1\r\n#{HOST}#{HOST}\r\n", 400, "repeated host"]
  }.freeze

  FRAMING = {
    "an empty length" => ["#{POST}content-length:\r\n\r\n", 400, "invalid content length"],
    "a length of spaces" => ["#{POST}content-length:   \r\n\r\n", 400, "invalid content length"],
    "a length with a plus" => ["#{POST}content-length: +5\r\n\r\nhello", 400, "invalid content length"],
    "a negative length" => ["#{POST}content-length: -5\r\n\r\nhello", 400, "invalid content length"],
    "a hexadecimal length" => ["#{POST}content-length: 0x5\r\n\r\nhello", 400, "invalid content length"],
    "a length with an underscore" => ["#{POST}content-length: 1_0\r\n\r\nhello", 400, "invalid content length"],
    "a length with a leading zero" => ["#{POST}content-length: 05\r\n\r\nhello", 400, "invalid content length"],
    "a fraction" => ["#{POST}content-length: 5.0\r\n\r\nhello", 400, "invalid content length"],
    "a list of lengths" => ["#{POST}content-length: 5, 5\r\n\r\nhello", 400, "invalid content length"],
    "a length beyond 64 bits" => ["#{POST}content-length: 18446744073709551621\r\n\r\nhello", 400, "invalid content length"],
    "a length that is negative to others" => ["#{POST}content-length: 9223372036854775808\r\n\r\nhello", 400, "invalid content length"],
    "two lengths" => ["#{POST}content-length: 5\r\ncontent-length: 6\r\n\r\nhello", 400, "repeated content length"],
    "the same length twice" => ["#{POST}content-length: 5\r\ncontent-length: 5\r\n\r\nhello", 400, "repeated content length"],
    "length and coding" => ["#{POST}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400,
                            "content length with transfer encoding"],
    "coding and length" => ["#{POST}transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n", 400,
                            "content length with transfer encoding"],
    "length spelt with an underscore" => ["#{POST}content_length: 5\r\n\r\nhello", 400, "framing field spelt with underscore"],
    "coding spelt with an underscore" => ["#{POST}Transfer_Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "framing field spelt with underscore"],
    "a coding for 1.0" => ["POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400, "transfer encoding in HTTP/1.0"],
    "two codings" => ["#{POST}transfer-encoding: chunked\r\ntransfer-encoding: x\r\n\r\n0\r\n\r\n", 400, "repeated transfer encoding"],
    "chunked twice" => ["#{POST}transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400, "repeated transfer encoding"],
    "chunked before another" => ["#{POST}transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 400, "invalid transfer encoding"],
    "chunked in quotes" => ["#{POST}transfer-encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 400, "invalid transfer encoding"],
    "an empty coding" => ["#{POST}transfer-encoding:\r\n\r\n0\r\n\r\n", 400, "invalid transfer encoding"],
    "a vertical tab before chunked" => ["#{POST}transfer-encoding: \vchunked\r\n\r\n0\r\n\r\n", 400, "control character"],
    "nearly chunked" => ["#{POST}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n", 501, "unsupported transfer coding"],
    "a coding that is not chunked" => ["#{POST}transfer-encoding: identity\r\n\r\n", 501, "unsupported transfer coding"],
    "gzip and chunked" => ["#{POST}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, "unsupported transfer coding"]
  }.freeze

  CHUNKS = {
    "no size" => ["\r\n", 400, "invalid chunk size"],
    "no number" => ["x\r\n", 400, "invalid chunk size"],
    "a size with a plus" => ["+1\r\na\r\n0\r\n\r\n", 400, "invalid chunk size"],
    "a negative size" => ["-1\r\na\r\n0\r\n\r\n", 400, "invalid chunk size"],
    "a size with 0x" => ["0x1\r\na\r\n0\r\n\r\n", 400, "invalid chunk size"],
    "a size with an underscore" => ["1_0\r\na\r\n0\r\n\r\n", 400, "invalid chunk size"],
    "a space before the size" => [" 1\r\na\r\n0\r\n\r\n", 400, "invalid chunk size"],
    "a space behind the size" => ["1 \r\na\r\n0\r\n\r\n", 400, "invalid chunk extension"],
    "a size beyond 64 bits" => ["10000000000000000\r\n", 400, "chunk size overflow"],
    "a size that is negative to others" => ["ffffffffffffffff\r\n", 400, "chunk size overflow"],
    "a size of zeros without end" => ["#{"0" * 20}\r\n", 400, "chunk size overflow"],
    "a bare LF behind the size" => ["1\na\r\n0\r\n\r\n", 400, "bare line feed"],
    "a bare CR behind the size" => ["1\rX\na\r\n0\r\n\r\n", 400, "bare carriage return"],
    "a bare LF in an extension" => ["1;a\nb\r\n0\r\n\r\n", 400, "bare line feed"],
    "a NUL in an extension" => ["1;a\0\r\nb\r\n0\r\n\r\n", 400, "invalid chunk extension"],
    "an extension without end" => ["1;#{"a" * 5000}\r\n", 400, "chunk extension too long"],
    "data that is too long" => ["1\r\nabc\r\n0\r\n\r\n", 400, "missing chunk terminator"],
    "data that is too short" => ["3\r\na\r\n0\r\n\r\n", 400, "missing chunk terminator"],
    "a bare LF behind the data" => ["1\r\na\n0\r\n\r\n", 400, "missing chunk terminator"],
    "a trailer without colon" => ["0\r\nx\r\n\r\n", 400, "invalid trailer"],
    "a trailer with a bare LF" => ["0\r\nx: y\n\r\n", 400, "bare line feed"],
    "a bare LF at the end of the trailers" => ["0\r\n\n", 400, "bare line feed"],
    "a folded trailer" => ["0\r\nx: y\r\n z\r\n\r\n", 400, "obsolete line folding"],
    "a space before the colon of a trailer" => ["0\r\nx : y\r\n\r\n", 400, "space before colon"],
    "a length in the trailers" => ["0\r\ncontent-length: 5\r\n\r\n", 400, "forbidden trailer field"],
    "a coding in the trailers" => ["0\r\ntransfer_encoding: chunked\r\n\r\n", 400, "forbidden trailer field"],
    "a host in the trailers" => ["0\r\nhost: b\r\n\r\n", 400, "forbidden trailer field"],
    "an address in the trailers" => ["0\r\nx-forwarded-for: 1.2.3.4\r\n\r\n", 400, "forbidden trailer field"],
    "trailers without end" => ["0\r\n#{"x: #{"y" * 1000}\r\n" * 9}\r\n", 431, "trailer too large"]
  }.transform_values { |body, *verdict| ["#{CHUNKED}#{body}", *verdict] }.freeze

  # Returns every row of a table.
  def self.rows(table) = table.map { |name, columns| Row.new(name, *columns) }
end
