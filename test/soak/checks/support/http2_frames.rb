# frozen_string_literal: true

# HTTP/2 frames (RFC 9113 §4, §6) as bytes, for clients that send frames which no library sends.
module Http2Frames
  PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
  TYPES = { data: 0, headers: 1, priority: 2, rst_stream: 3, settings: 4, ping: 6, goaway: 7, window_update: 8, continuation: 9 }.freeze
  END_STREAM = 1
  END_HEADERS = 4
  INITIAL_WINDOW = 4

  module_function

  def frame(type, flags, stream, payload = "")
    number = TYPES[type] || type
    [payload.bytesize >> 16, payload.bytesize & 0xffff, number, flags, stream].pack("CnCCN") + payload.b
  end

  # A field without table and compression (RFC 7541 §6.2.2).
  def field(name, value) = "\0".b + text(name) + text(value)

  def text(string)
    rest = string.bytesize
    return [rest].pack("C") + string.b if rest < 127

    rest -= 127
    bytes = [127]
    while rest >= 128
      bytes << ((rest % 128) | 128)
      rest /= 128
    end
    (bytes << rest).pack("C*") + string.b
  end

  def block(method = "GET", path = "/")
    field(":method", method) + field(":scheme", "http") + field(":path", path) + field(":authority", "localhost")
  end

  def get(stream, path = "/") = frame(:headers, END_HEADERS | END_STREAM, stream, block("GET", path))
  def post(stream, *fields) = frame(:headers, END_HEADERS, stream, block("POST") + fields.join)
  def reset(stream) = frame(:rst_stream, 0, stream, [8].pack("N"))
  def window_update(stream, bytes) = frame(:window_update, 0, stream, [bytes].pack("N"))
  def setting(number, value) = frame(:settings, 0, 0, [number, value].pack("nN"))

  # Removes the first frame from `buffer`: type, flags, stream and payload; nil if it is incomplete.
  def take(buffer)
    return if buffer.bytesize < 9

    high, low, type, flags, stream = buffer.unpack("CnCCN")
    length = (high << 16) | low
    return if buffer.bytesize < 9 + length

    [type, flags, stream, buffer.slice!(0, 9 + length).byteslice(9..)]
  end
end
