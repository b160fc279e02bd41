# frozen_string_literal: true

require "json"

module Fairlead
  module Acme
    # The native program that speaks with an authority, for one order (crates/acme), as seen by the process that has started it.
    # It ends with its standard input, and so with this process.
    class Program
      # The path below a folder of the load path.
      NAME = "fairlead/fairlead-acme"

      # Seconds that an order may take.
      LIMIT = 10 * 60

      # Seconds that the program may live beyond the limit.
      GRACE = 10

      # Seconds between two checks on the program while it prints nothing.
      LOOK = 1

      # The largest output of the program, in bytes.
      OUTPUT_MOST = 1024 * 1024

      # +title+: its name among the processes. +limit+: seconds that the order may take.
      def initialize(title, limit: LIMIT)
        @title = title
        @limit = limit
        @lock = Mutex.new
      end

      # Starts it with the order and yields each event, until it ends. Raises a Problem if it does not end by itself.
      def run(input, &block)
        output = start or return
        tell(JSON.generate(seconds: @limit, **input))
        each_line(output) { |line| block.call(JSON.parse(line, symbolize_names: true)) }
      rescue Errno::EPIPE, JSON::ParserError => e
        raise Problem.new("process", "the program that orders certificates has failed: #{e.message}")
      ensure
        finish(output)
      end

      # Lets the program continue after an event for which it waits.
      def go_on = tell("")

      # Ends the program at once, or prevents its start.
      def stop
        @lock.synchronize do
          @stopped = true
          Process.kill(:KILL, @waiter.pid) if @waiter&.alive?
        end
      rescue Errno::ESRCH
        nil
      end

      def stopped? = @stopped == true

      private

      def start
        path = NativeProgram.find(NAME, "the program that orders certificates")
        input, @input = IO.pipe
        output, outcome = IO.pipe
        @lock.synchronize do
          next if @stopped

          @waiter = Process.detach(Process.spawn([path, @title], in: input, out: outcome, pgroup: true))
        end
        output if @waiter
      ensure
        [input, outcome].compact.each(&:close)
        output&.close unless @waiter
      end

      def tell(line) = @input.write(line, "\n")

      def each_line(output)
        text = String.new
        while (chunk = read(output))
          text << chunk
          raise Problem.new("process", "the program that orders certificates says too much") if text.bytesize > OUTPUT_MOST

          yield text.slice!(0..text.index("\n")).force_encoding(Encoding::UTF_8) while text.include?("\n")
        end
      end

      # The next output; nil at the end. A worker that was forked just now may have the other end of the pipe, too, which then
      # stays open.
      def read(output)
        @deadline ||= Clock.now + @limit + GRACE
        until output.wait_readable(LOOK)
          return unless @waiter.alive?
          raise Problem.new("timeout", "the program that orders certificates has not ended within #{@limit + GRACE} s") if Clock.now > @deadline
        end
        output.readpartial(65_536)
      rescue EOFError
        nil
      end

      # If the program still runs, it is no longer needed.
      def finish(output)
        @lock.synchronize { Process.kill(:KILL, @waiter.pid) if @waiter&.alive? && output }
      rescue Errno::ESRCH
        nil
      ensure
        [@input, output].compact.each(&:close)
        @waiter&.join
      end
    end
  end
end
