# frozen_string_literal: true

require "io/console"
require "io/wait"
require "json"

module Fairlead
  module Control
    class Tool
      # `fairlead top`: the figures of the dashboard in a terminal, new each second. Without a terminal it prints them once.
      class Top
        autoload :Table, "fairlead/control/tool/top/table"

        # Seconds between two snapshots.
        INTERVAL = 1

        OTHER = "the answer is of another version of Fairlead, or of another program; this is #{VERSION}".freeze

        # Rows and columns of a terminal that does not know its size.
        USUAL_SIZE = [24, 80].freeze

        # The other screen of the terminal, without a cursor, and back.
        ENTER = "\e[?1049h\e[?25l"
        LEAVE = "\e[?25h\e[?1049l"

        # The rest of a line, and the rest of the screen, are cleared.
        LINE_END = "\e[K\r\n"
        HOME = "\e[H"
        SCREEN_END = "\e[J"

        # The block returns a Client of the control server, which a restart may replace.
        def initialize(output, input: $stdin, &client)
          @output = output
          @input = input
          @client = client
        end

        # Prints one snapshot. Raises Client::Failure.
        def once = CLI.print(lines(snapshot).map { |line| "#{line}\n" }.join, @output)

        # Runs until q, or a signal.
        def run
          return once unless @output.tty?

          snapshot # or raises the reason
          on_screen do
            draw
            draw until asked_to_end?
          end
          0
        end

        private

        def snapshot
          JSON.parse(@client.call.get("snapshot"))
        rescue JSON::ParserError
          raise Client::Failure, OTHER
        end

        # Raises Client::Failure for the snapshot of another version.
        def lines(snapshot, **rows)
          Table.lines(snapshot, **rows)
        rescue NoMethodError, TypeError, ArgumentError
          raise Client::Failure, OTHER
        end

        # Changes the terminal for the block; restores it however that ends, and while the command is suspended.
        def on_screen
          @wakeups, wake = IO.pipe
          former = %w[WINCH CONT TSTP].to_h { |name| [name, trap(name) { handle(name, wake) }] }
          enter
          yield
        ensure
          leave
          former&.each { |name, handler| trap(name, handler || "DEFAULT") }
        end

        def handle(name, wake)
          if name == "TSTP"
            leave
            return Process.kill(:STOP, Process.pid)
          end
          enter if name == "CONT"
          wake.write_nonblock(".", exception: false)
        end

        def enter
          if @input.tty?
            @mode ||= @input.console_mode
            @input.raw!(intr: true)
          end
          @output.write(ENTER)
          @output.flush
        end

        def leave
          @output.write(LEAVE)
          @output.flush
          @input.console_mode = @mode if @mode
        rescue SystemCallError, IOError
          nil # the terminal is gone
        end

        def draw
          rows, columns = @output.winsize.zip(USUAL_SIZE).map { |size, usual| size.positive? ? size : usual }
          shown = lines(current, rows: rows - 1).first(rows - 1).map { |line| line[0, columns] }
          @output.write(HOME, shown.join(LINE_END), "\e[K", SCREEN_END)
          @output.flush
        end

        # The last snapshot, with the reason if there is no newer one: the server may be restarting.
        def current
          @last = snapshot
        rescue Client::Failure, Target::Missing => e
          { **@last.to_h, "failure" => e.message }
        end

        # Waits for the next second, a key, or another size of the terminal.
        def asked_to_end?
          ready, = IO.select([@wakeups, (@input if @input.tty?)].compact, nil, nil, INTERVAL)
          @wakeups.read_nonblock(64, exception: false) if ready&.include?(@wakeups)
          return false unless ready&.include?(@input)

          keys = @input.read_nonblock(16, exception: false)
          keys.nil? || (keys.is_a?(String) && keys.match?(/[qQ\x04]/))
        end
      end
    end
  end
end
