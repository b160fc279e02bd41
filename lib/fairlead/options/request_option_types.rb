# frozen_string_literal: true

module Fairlead
  module Options
    # The types of options about requests.
    module Types
      # The source of a client's address; the value is the text that the engine reads.
      class RemoteAddress < Text
        # RFC 9110 §5.6.2.
        NAME = /\A[!#$%&'*+.^`|~\w-]+\z/

        def expectation = "socket, localhost, an address, header: \"NAME\" or proxy_protocol: :v1 (:v2, :any)"

        def parse(value)
          text = super(value.is_a?(Hash) && value.size == 1 ? value.first.join(":") : value)
          kind, rest = text.split(":", 2)
          case kind
          when "socket", "localhost" then rest.nil? || invalid!(value)
          when "header" then NAME.match?(rest) || invalid!(value)
          when "proxy_protocol" then %w[v1 v2 any].include?(rest) || invalid!(value)
          else Network.address?(text) || invalid!(value)
          end
          text
        end

        # The address of the PROXY protocol is a matter of the listeners: Service#engine_listeners.
        def to_engine(value)
          return "socket" if value.start_with?("proxy_protocol:")

          value == "localhost" ? "127.0.0.1" : value
        end
      end

      # Redirects of requests without TLS to the same place with TLS: true, false, or a port.
      class HttpsRedirect < Type
        PORTS = (1..65_535)

        def initialize
          super("=[PORT]")
        end

        def expectation = "true, false, or a port from #{PORTS.begin} to #{PORTS.end}"
        def implied = true

        def parse(value)
          return value.to_s == "true" if %w[true false].include?(value.to_s)

          port = value.is_a?(String) ? Integer(value, 10, exception: false) : value
          port.is_a?(Integer) && PORTS.cover?(port) ? port : invalid!(value)
        end

        def to_engine(value) = value.to_s
      end

      # The clients that are told the times of their requests: true, false, or :trusted.
      class ServerTiming < Type
        VALUES = { "true" => true, "false" => false, "trusted" => :trusted }.freeze

        def initialize
          super("=[trusted]")
        end

        def expectation = "true, false or trusted"
        def implied = true

        def parse(value) = VALUES.fetch(value.to_s) { invalid!(value) }
      end

      # The value of the field Strict-Transport-Security (RFC 6797), or nil for none.
      class Hsts < Text
        YEAR = 365 * 86_400
        FIELD = /\Amax-age=(?<max_age>\d{1,10})(?<subdomains>; ?includeSubDomains)?(?<preload>; ?preload)?\z/i
        NAMES = %i[max_age include_subdomains preload].freeze

        def expectation = "seconds, max_age: SECONDS, include_subdomains: true, preload: true, or the value of the field"

        def parse(value)
          case value
          when Hash then of_hash(value.transform_keys(&:to_sym), value)
          when true, "true" then of(YEAR)
          when false, "false", "none" then nil
          when Integer, /\A\d{1,10}\z/ then of(value.to_i)
          else of_field(value)
          end
        end

        private

        def of_hash(parts, value)
          invalid!(value) unless (parts.keys - NAMES).empty? && parts.except(:max_age).values.all? { |one| [true, false, nil].include?(one) }
          of(parts.fetch(:max_age, YEAR), subdomains: parts[:include_subdomains], preload: parts[:preload])
        end

        def of_field(value)
          match = value.is_a?(String) && FIELD.match(value)
          match ? of(match[:max_age].to_i, subdomains: match[:subdomains], preload: match[:preload]) : invalid!(value)
        end

        # Requirements of the browsers' lists: https://hstspreload.org.
        def of(seconds, subdomains: false, preload: false)
          invalid!(seconds) unless seconds.is_a?(Integer) && !seconds.negative?
          raise Invalid, "preload needs include_subdomains and a max_age of a year" if preload && !(subdomains && seconds >= YEAR)

          ["max-age=#{seconds}", ("includeSubDomains" if subdomains), ("preload" if preload)].compact.join("; ")
        end
      end

      # The value of a header field (RFC 9110 §5.5).
      class FieldValue < Text
        VALUE = /\A[^\x00-\x20\x7f](?:[^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?\z/

        def expectation = "the value of a field, without line breaks and other control characters"

        def parse(value)
          text = super
          VALUE.match?(text) ? text : invalid!(value)
        end
      end

      # The parties that take turns; the value is the text that the engine reads.
      class FlowKey < Text
        def expectation = "connection, ip, or the name of a field such as x-api-key"

        def parse(value)
          text = super(value.is_a?(Symbol) ? value.to_s : value)
          RemoteAddress::NAME.match?(text) ? text.downcase : invalid!(value)
        end
      end

      # A list of paths. From the command line they are separated by commas.
      class Paths < Type
        # Paths as they are sent: nothing is decoded, and the query is ignored.
        PATH = %r{\A/[^ ,?#[:cntrl:]]*\z}

        def expectation = "paths such as /up,/ping, without a query"

        # True, because several values are one list.
        def list? = true

        def parse(value)
          paths = Array(value)
          invalid!(value) unless paths.all?(String)

          paths = paths.flat_map { |path| path.split(",") }.map(&:strip)
          return [] if paths == ["none"]

          paths.any? && paths.all?(PATH) ? paths.uniq : invalid!(value)
        end
      end

      # "PATH: SECONDS", the timeout of requests for a path, or for all paths that begin with it if it ends with *; the value is [path,
      # seconds].
      class TimeoutRule < Text
        def expectation = "PATH: SECONDS, such as /reports/*: 300"

        def parse(value)
          path, seconds = super.split(/:\s*/, 2)
          invalid!(value) unless Paths::PATH.match?(path.to_s) && seconds

          [path, Seconds.new(zero: true).parse(seconds.strip).to_f]
        rescue Invalid
          invalid!(value)
        end

        def format(value) = "#{value.first}: #{value.last}"
      end

      # The share of requests by status or class of statuses; the value is the text that the engine reads.
      class Shares < Type
        STATUS = /\A[1-9](?:xx|\d\d)\z/

        def expectation = "all, or shares from 0 to 1 by status, such as 2xx=0.01,404=0.5"

        # True, because several values are one list.
        def list? = true

        def parse(value)
          rules = Array(value.is_a?(Hash) ? [value] : value).flat_map { |part| rules_of(part) }
          return "all" if rules == [["all"]]

          rules.each { |status, share| invalid!(value) unless STATUS.match?(status.to_s) && share?(share) }
          rules.any? ? rules.to_h { |status, share| [status.to_s, Float(share)] }.map { |rule| rule.join("=") }.join(",") : invalid!(value)
        end

        private

        def rules_of(part)
          case part
          when Hash then part.to_a
          when String then part.split(",").map { |rule| rule.strip.split("=", 2) }
          else invalid!(part)
          end
        end

        def share?(share) = Float(share, exception: false)&.between?(0, 1)
      end

      # A list of request methods; empty for any. From the command line they are separated by commas.
      class Methods < Type
        TOKEN = /\A[!#$%&'*+.^`|~\w-]{1,64}\z/

        def expectation = "any, or names of methods such as GET,HEAD"

        # True, because several values are one list.
        def list? = true

        def parse(value)
          names = Array(value)
          invalid!(value) unless names.all? { |name| name.is_a?(String) || name.is_a?(Symbol) }

          names = names.flat_map { |name| name.to_s.split(",") }.map(&:strip)
          return [] if names == ["any"]

          names.any? && names.all?(TOKEN) ? names.uniq : invalid!(value)
        end
      end

      # An address or a network, or `unix` for the peers of Unix sockets.
      class Network < Text
        class << self
          # True if +text+ is only an IP address.
          def address?(text) = !text.match?(%r{[/%\[]}) && !parsed(text).nil?

          # The IPAddr, or nil.
          def parsed(text)
            require "ipaddr"
            IPAddr.new(text)
          rescue IPAddr::Error
            nil
          end
        end

        # A mask such as /255.0.0.0 has another meaning in other programs.
        PREFIX = %r{\A[\h.:]+(?:/\d{1,3})?\z}

        def expectation = "an address, a network such as 10.0.0.0/8, or unix"

        def parse(value)
          text = super
          text == "unix" || (PREFIX.match?(text) && self.class.parsed(text)) ? text : invalid!(value)
        end
      end
    end
  end
end
