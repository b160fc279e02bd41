# frozen_string_literal: true

module Fairlead
  class Supervisor
    # The two pipes between the supervisor and its workers. Workers read one; it tells them that the supervisor wants them
    # to end, or that it is gone. (A signal could be lost right after the fork.) Through the other one a worker reports, in a
    # line, that it is ready or why it cannot start.
    class Pipes
      WorkerReport = Struct.new(:kind, :slot, :text)

      # Lines of up to 4096 bytes are never mixed with others (PIPE_BUF), and String#dump makes a text up to four times as
      # long.
      LONGEST_TEXT = 1000

      # A byte for each possible worker: the supervisor wants it to end.
      END_BYTES = "." * 4096

      def initialize
        @life_reader, @life_writer = IO.pipe
        @report_reader, @report_writer = IO.pipe
        @buffer = +""
      end

      # --- the supervisor's side

      # Readable when a worker has reported.
      def reports_io = @report_reader

      # The reports since the last call.
      def reports
        while (chunk = @report_reader.read_nonblock(4096, exception: false)).is_a?(String)
          @buffer << chunk
        end
        lines = @buffer.slice!(/\A.*\n/m).to_s.lines
        lines.map { |line| parse(line.chomp) }
      end

      # Tells every worker to drain, even one that is just being forked.
      def ask_workers_to_end
        return if @life_writer.closed?

        @life_writer.write_nonblock(END_BYTES)
        @life_writer.close
      end

      # --- a worker's side

      # Closes the ends that a worker does not use; called right after the fork.
      def close_supervisor_ends
        @life_writer.close
        @report_reader.close
      end

      # Readable when the supervisor wants the worker to end, or is gone.
      def end_io = @life_reader

      # :ending if the supervisor wants the worker to end, :gone if it has died, else nil.
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
        nil # the supervisor is gone
      end

      def parse(line)
        kind, slot, text = line.split(" ", 3)
        WorkerReport.new(kind.to_sym, Integer(slot, 10), text.undump)
      end
    end
  end
end
