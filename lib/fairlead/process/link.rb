# frozen_string_literal: true

require "socket"

module Fairlead
  # One end of the connection between the supervisor and one of its processes: a socket pair. A message has a kind, fields
  # (text), and descriptors. When a process ends, the other side reads the end of the stream, so neither needs another way to
  # notice the other's death. On Linux, the socket keeps messages apart (SEQPACKET). Elsewhere, a message begins with its length
  # (crates/system/src/messages.rs).
  class Link
    # +kind+: a Symbol. +fields+: Strings. +ios+: the descriptors of the message.
    Message = Struct.new(:kind, :fields, :ios) do
      def number(index = 0) = Integer(fields.fetch(index), 10)

      # +range+: of the fields.
      def numbers(range) = fields[range].to_a.map { |text| Integer(text, 10) }
    end

    # The other end is closed.
    GONE = Message.new(:gone, [].freeze, [].freeze).freeze

    SEPARATOR = "\0"

    # The longest text of a field, in bytes; longer texts are cut.
    LONGEST_FIELD = 4000

    # The longest message that can be received, in bytes.
    LONGEST_MESSAGE = 64 * 1024

    # Seconds that a message may wait for room, and seconds between two attempts.
    PATIENCE = 30
    PAUSE = 0.05

    # Number of listeners in one message; the system allows 253 descriptors.
    PART = 200

    class << self
      # The two ends of a new link.
      def pair
        return UNIXSocket.pair(:SEQPACKET).map { |socket| new(socket) } unless Native.portable?

        UNIXSocket.pair(:STREAM).map { |socket| new(enlarge(socket)) }
      end

      # The end with an inherited descriptor.
      def adopt(descriptor) = new(UNIXSocket.for_fd(descriptor))

      private

      # The system may refuse large buffers.
      def enlarge(socket)
        %i[SNDBUF RCVBUF].each { |option| socket.setsockopt(:SOCKET, option, BUFFER_BYTES) }
        socket
      rescue SystemCallError
        socket
      end
    end

    # Requested size of the buffers of a stream.
    BUFFER_BYTES = 256 * 1024

    # Bytes and format of the length of a message.
    LENGTH_BYTES = 4
    LENGTH = "L"

    # Seconds that the rest of a message may take.
    REST = 5

    # +socket+: a UNIXSocket of type SEQPACKET or STREAM.
    def initialize(socket)
      @socket = socket
      @is_stream = socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_STREAM
      @socket.close_on_exec = true
    end

    def to_io = @socket

    def fileno = @socket.fileno

    def closed? = @socket.closed?

    def close = @socket.close

    # Sends a message. +ios+: objects with a descriptor, or descriptors. Returns false if the other end is closed, or takes no
    # more messages.
    def send(kind, *fields, ios: [])
      text = [kind, *fields.map { |field| clean(field) }].join(SEPARATOR)
      ios = ios.map { |io| io.is_a?(Integer) ? IO.for_fd(io, autoclose: false) : io.to_io }
      control = ios.empty? ? [] : [Socket::AncillaryData.unix_rights(*ios)]
      text = [text.bytesize].pack(LENGTH) + text.b if @is_stream
      return false if @is_stream && !@socket.wait_writable(0)

      sent = @socket.sendmsg_nonblock(text, 0, nil, *control, exception: false)
      sent == text.bytesize || (sent != :wait_writable && end_in_the_middle)
    rescue SystemCallError, IOError
      false
    end

    # Sends a message as soon as there is room for it, and waits at most PATIENCE. Not for a main loop. Returns false as #send
    # does.
    def send_soon(kind, *fields, ios: [])
      deadline = Clock.now + PATIENCE
      until (sent = send(kind, *fields, ios: ios)) || closed? || Clock.now > deadline
        sleep(PAUSE)
      end
      sent
    end

    # Sends listeners, in as many messages as necessary. Returns false as #send does.
    def send_listeners(ios) = ios.each_slice(PART).all? { |part| send(:listeners, ios: part) }

    # The next Message, GONE, or nil if no message has arrived.
    def receive
      text, _, _, *controls = @socket.recvmsg_nonblock(@is_stream ? LENGTH_BYTES : LONGEST_MESSAGE, 0, nil, scm_rights: true, exception: false)
      return if text == :wait_readable

      text = receive_rest(text) if @is_stream && text
      return GONE if text.nil? || text.empty?

      parse(text, controls.flat_map { |control| control.unix_rights || [] })
    rescue Errno::ECONNRESET # the other end is closed, and has not read everything; its own messages come next
      retry
    rescue SystemCallError, IOError
      GONE
    end

    # The messages that have arrived, GONE last.
    def messages
      messages = []
      while (message = receive)
        messages << message
        break if message.equal?(GONE)
      end
      messages
    end

    private

    # A socket that is ready has room for a whole message. Should the system take only a part, then nothing may follow. Returns false.
    def end_in_the_middle = !@socket.shutdown

    # +start+: of the length. nil if the other end is closed.
    def receive_rest(start)
      length = fill(start, LENGTH_BYTES)&.unpack1(LENGTH)
      length && fill("".b, length)
    end

    def fill(text, length)
      while text.bytesize < length
        more = @socket.recv_nonblock(length - text.bytesize, exception: false)
        if more == :wait_readable
          return unless @socket.wait_readable(REST)
        elsif more.nil? || more.empty?
          return
        else
          text << more
        end
      end
      text
    end

    def clean(field) = field.to_s.b.byteslice(0, LONGEST_FIELD).delete(SEPARATOR)

    def parse(text, ios)
      kind, *fields = text.b.split(SEPARATOR, -1).map { |field| SystemText.decode(field) }
      ios.each { |io| io.close_on_exec = true }
      Message.new(kind.to_sym, fields, ios)
    end
  end
end
