# frozen_string_literal: true

module Fairlead
  module Soak
    # The lines of the server's standard error, each with its cause: clients of the soak, its application, or its acts. A line without a
    # cause is a fault.
    class Causes
      # Lines that follow another one: backtraces.
      CONTINUED = /\A(?:\t|\s+from |\s*\.\.\. \d+ levels)/

      # Hostile and slow clients.
      CLIENTS = [
        /refused (?:4\d\d|501|505) \(.+\) from /,
        /closed a WebSocket of \S+: .+ \(close code \d+\)/,
        /closed (?:a connection|the connection|an event stream) (?:of|from) \S+: /,
        /closed HTTP\/2 connection from \S+: /,
        /and \d+ more like this/
      ].freeze

      # Faults of the application on purpose (application/troubles.rb, keepers.rb).
      APPLICATION = [
        /error in the application: (?:GET|POST) \/(?:fail|abandon|two|change|use|keep\w*)\b/,
        /thread fairlead \d+ was killed; another one takes its place/
      ].freeze

      # Acts => the lines that they explain.
      ACTS = {
        kill: [
          /worker \d+ \(pid \d+\) ended unexpectedly: killed by SIGKILL/,
          /worker \d+ .*goes on, its replacement did not start/,
          /the process that serves .*is lost, starting another one: .*SIGKILL/,
          /refused 502 \(the response of another worker ended before it began\)/,
          *(failed = [/(?:phased restart|hot restart|refork): failed, generation \d+ goes on serving: /,
                      /(?:a WebSocket|an event stream) of \S+ cannot migrate: the workers that continue have older code/])
        ],
        kill_spawner: [
          /the spawner of generation \d+ is lost, .*: killed by SIGKILL/,
          /worker \d+ ended unexpectedly: unknown status/, # the spawner has not said which process it is
          /cannot add a worker: its spawner accepts no message/,
          *failed
        ],
        refork: [/refork: refused: /]
      }.freeze

      # The application holds all descriptors now and then.
      LIMITED = [/descriptor/, /Too many open files/].freeze

      # A client has more responses at a time than fit into its share, or does not take its messages or its response while others need the
      # memory. The loss of a response that its client reads is a failure of this client.
      SMALL = [/refused streams of HTTP\/2 connection from \S+: its share of \w+ is used up/,
               /(?:closed a WebSocket of|aborted a response to) \S+: others need its share of response_memory_total_bytes/].freeze

      # +acts+: number of acts by name. +limited+: true if descriptors may run out. +small+: true if memory for responses may.
      def initialize(acts, limited: false, small: false)
        @known = CLIENTS + APPLICATION + ACTS.slice(*acts.keys).values.flatten
        @known += LIMITED if limited
        @known += SMALL if small
      end

      # Returns the lines without a cause.
      def unknown(lines) = lines.map(&:chomp).reject { |line| line.empty? || line.match?(CONTINUED) || @known.any? { |cause| line.match?(cause) } }
    end
  end
end
