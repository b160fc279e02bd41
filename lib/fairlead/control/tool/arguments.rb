# frozen_string_literal: true

require "optparse"

module Fairlead
  module Control
    class Tool
      # The arguments of `fairlead ctl`: pumactl's, --json and --wait.
      class Arguments
        # The arguments are wrong.
        class Invalid < Error; end

        # Default time of --wait, in seconds.
        WAIT = 120

        # The given values, or nil.
        attr_reader :url, :token, :state, :pid_file, :pid, :config, :environment, :wait, :command

        # The arguments after the command, which only `start` takes.
        attr_reader :rest

        def initialize(arguments)
          @quiet = @json = @once = @help = @version = false
          @command, *@rest = parser.permute(split(arguments))
          @rest += @flags_of_start
        rescue OptionParser::ParseError => e
          raise Invalid, e.message
        end

        def quiet? = @quiet
        def json? = @json
        def once? = @once
        def help? = @help
        def version? = @version

        def usage = parser.help

        private

        # Arguments after `start` are for the server.
        def split(arguments)
          place = arguments.index("start") || arguments.size
          @flags_of_start = arguments.drop(place + 1)
          arguments.take(place + 1)
        end

        def parser
          @parser ||= OptionParser.new("Usage: fairlead ctl [options] COMMAND\n\n#{commands}\nWithout options, looks up the server in the " \
                                       "configuration of this folder.\n\nOptions", 30) do |parser|
            where(parser)
            how(parser)
          end
        end

        def commands
          Tool::COMMANDS.map { |name, (_, text)| "  #{name.ljust(24)}  #{text}\n" }.join
        end

        def where(parser)
          parser.on("-S", "--state PATH", "The state file of the server.") { |value| @state = value }
          parser.on("-C", "--control-url URL", "The address of its control server.") { |value| @url = value }
          parser.on("-T", "--control-token TOKEN", "The token of its control server.") { |value| @token = value }
          parser.on("-P", "--pidfile PATH", "Its pid file.") { |value| @pid_file = value }
          parser.on("-p", "--pid PID", Integer, "Its process id.") { |value| @pid = value }
          parser.on("-F", "--config-file PATH", "Its configuration file.") { |value| @config = value }
          parser.on("-e", "--environment NAME", "The environment, which says which configuration file is its own.") { |value| @environment = value }
        end

        def how(parser)
          parser.on("--wait=[SEC]", Float, "Waits until it is done, and fails if that fails (#{WAIT} s).") { |value| @wait = value || WAIT }
          parser.on("--json", "Prints for programs.") { @json = true }
          parser.on("--once", "Prints one snapshot, for top.") { @once = true }
          parser.on("-Q", "--quiet", "Prints only errors and the requested output.") { @quiet = true }
          parser.on("-h", "-H", "--help", "Prints this.") { @help = true }
          parser.on("-V", "--version", "Prints the version.") { @version = true }
        end
      end
    end
  end
end
