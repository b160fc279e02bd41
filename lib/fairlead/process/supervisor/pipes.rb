# frozen_string_literal: true

module Fairlead
  class Supervisor
    # The two pipes between the supervisor and its workers. One ends when the supervisor wants an end or dies, which no
    # worker can miss, as it can miss a signal that comes right after the fork. Through the other a worker reports, a line
    # at a time, that it is ready or why it cannot start.
    class Pipes
      WorkerReport = Struct.new(:kind, :slot, :text)

      # A line of up to 4096 bytes is written whole or not at all (PIPE_BUF), and dumping can make a text four times as long.
      LONGEST_TEXT = 1000

      # A byte for each worker there can be, which says that the supervisor wants an end.
      END_BYTES = "." * 4096

      def initialize
        @life_reader, @life_writer = IO.pipe
        @report_reader, @report_writer = IO.pipe
        @buffer = +""
      end

      # --- the supervisor's side

      # Readable when a worker has reported.
      def reports_io = @report_reader

      # The reports that have come since the last call.
      def reports
        while (chunk = @report_reader.read_nonblock(4096, exception: false)).is_a?(String)
          @buffer << chunk
        end
        lines = @buffer.slice!(/\A.*\n/m).to_s.lines
        lines.map { |line| parse(line.chomp) }
      end

      # Tells every worker, also one that is just being forked, to drain.
      def ask_workers_to_end
        return if @life_writer.closed?

        @life_writer.write_nonblock(END_BYTES)
        @life_writer.close
      end

      # --- a worker's side

      # Leaves the worker its ends; called right after the fork.
      def close_supervisor_ends
        @life_writer.close
        @report_reader.close
      end

      # Readable when the supervisor wants an end or is gone.
      def end_io = @life_reader

      # What has become of the supervisor: :ending when it wants an end, :gone without having said so, else nil.
      def supervisor_state
        case @life_reader.read_nonblock(1, exception: false)
        when String then :ending
        when nil then :gone
        end
      end

      def booted(slot) = report("booted", slot)

      def failed(slot, reason) = report("failed", slot, reason)

      private

      def report(kind, slot, text = "")
        @report_writer.syswrite("#{kind} #{slot} #{text.byteslice(0, LONGEST_TEXT).scrub.dump}\n")
      rescue SystemCallError
        nil # without a supervisor there is nobody to tell
      end

      def parse(line)
        kind, slot, text = line.split(" ", 3)
        WorkerReport.new(kind.to_sym, Integer(slot, 10), text.undump)
      end
    end
  end
end
