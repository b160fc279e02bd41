# frozen_string_literal: true

module Fairlead
  # The destination of an engine's own lines, about requests and problems: native threads write them, so the engine needs
  # descriptors. If the log has none (a Logger, JSON), the engine gets a pipe, and a Ruby thread hands over its lines.
  class EngineLines
    # Seconds that the thread may take to hand over the last lines.
    GRACE = 1

    # Ends the thread: no line of the engine begins like that.
    LAST = "\0\n"

    # The descriptors; +request_fd+ is nil if requests are not logged.
    attr_reader :request_fd, :error_fd

    # +log+: an EventLog. +access_log+: an AccessLog.
    def initialize(log, access_log)
      @log = log
      @access_log = access_log # keeps its descriptor open for as long as the engine may know the number
      @pipes = []
      @error_fd = log.error_fd || pipe { |line| log.engine_failed(line.delete_prefix("[#{Process.pid}] ")) }
      @request_fd = access_log.fileno || (requests_fd if access_log.output?)
    end

    # Hands over the remaining lines. The engine has to be stopped. +written+: true if it no longer uses the descriptors.
    def close(written: false)
      @pipes.each { |pipe| pipe.finish(written) }
    end

    private

    def requests_fd = @log.request_fd || pipe { |line| @log.request_served(line) }

    def pipe(&block)
      Pipe.new(block).tap { |pipe| @pipes << pipe }.fileno
    end

    # A pipe, and the thread that reads it.
    class Pipe
      def initialize(receiver)
        require "io/nonblock"
        @receiver = receiver
        @reader, @writer = IO.pipe
        @writer.nonblock = false # a full pipe makes the writer wait, as a full disk does
        @thread = Thread.new { hand_over }
        @thread.name = "fairlead log"
        @thread.report_on_exception = false
      end

      def fileno = @writer.fileno

      # Otherwise the number stays taken as long as this object lives: a late native thread writes to /dev/null, and not to a
      # file that has got the same number.
      def finish(written)
        return if @writer.closed? || @reader.closed?

        @writer.write_nonblock(LAST, exception: false)
        @thread.join(GRACE) || @thread.kill
        written ? @writer.close : @writer.reopen(File::NULL, "w")
        @reader.close
      rescue IOError
        nil # another thread has done it meanwhile
      end

      private

      def hand_over
        @reader.each_line do |line|
          break if line == LAST

          @receiver.call(line.force_encoding(Encoding::UTF_8).scrub.chomp)
        rescue StandardError
          nil # the log's own business; the next line may work
        end
      end
    end
    private_constant :Pipe
  end
end
