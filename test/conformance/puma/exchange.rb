# frozen_string_literal: true

require "json"
require "socket"
require_relative "../../support/http_client"

module PumaAnswers
  # A server's response to some bytes, split into parts for comparison. Each part has a name:
  #
  #   Exchange.new(port, "GET / HTTP/1.1\r\n…").parts
  #   # => { "connection" => "kept", "version" => "HTTP/1.1", "status" => "200", "framing" => "length", "body" => "hello", … }
  #
  # The field `connection` is the part "field connection"; the part "connection" is the state of the connection afterwards.
  # Lengths are compared if no body shows them. Names of the parts of a second response end with "(2)".
  class Exchange
    # Fields that may always differ: times, and the servers' names.
    LEFT_OUT = %w[date x-runtime server content-length transfer-encoding].freeze

    # Sent behind the request: a server that has kept the connection responds to it.
    PROBE = "GET /probe HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\n\r\n"
    PROBED = "the connection was kept"

    # Old versions of Puma write field names with capitals.
    class Client < Fairlead::Test::HttpClient
      private

      def parse(head) = super(head.gsub(/^[\w-]+(?=:)/) { |name| name.downcase(:ascii) })
    end

    # Reads the final responses in the order of +requests+, which are sent at once.
    def initialize(port, requests)
      @client = Client.new(TCPSocket.new("127.0.0.1", port))
      @interim = []
      @answers = []
      @client.write(requests.join)
      @end = read(requests.map { |request| request[/\A\s*([A-Z]+) /n, 1] })
    ensure
      @client&.close
    end

    def parts
      parts = { "connection" => @end }
      parts["interim"] = @interim.join("; ") unless @interim.empty?
      @answers.each_with_index do |(answer, method), index|
        parts.merge!(parts_of(answer, method).transform_keys { |name| index.zero? ? name : "#{name} (#{index + 1})" })
      end
      parts
    end

    private

    # Returns the state of the connection afterwards.
    def read(methods)
      methods.each { |method| @answers << [final(method), method] }
      @client.write(PROBE)
      @client.rest.include?(PROBED) ? "kept" : "closed"
    rescue Errno::EPIPE, Errno::ECONNRESET
      "closed"
    rescue Fairlead::Test::HttpClient::CutOff
      "cut off"
    rescue Fairlead::Test::HttpClient::MalformedAnswer
      "not HTTP"
    rescue Fairlead::Test::Waiting::Expired
      "silent"
    end

    def final(method)
      answer = @client.answer(to: method)
      while answer.interim?
        @interim << answer.head.strip.sub(%r{\AHTTP/1.1 }, "").gsub("\r\n", ", ")
        answer = @client.answer(to: method)
      end
      answer
    end

    def parts_of(answer, method)
      fields = answer.fields.reject { |name, _| LEFT_OUT.include?(name) }.group_by(&:first)
      fields = fields.transform_values { |pairs| pairs.map(&:last).join("; ") }
      connection = fields.delete("connection")
      fields["field connection"] = connection.downcase if connection
      { "version" => answer.version, "status" => answer.status.to_s, "reason" => answer.reason, "framing" => framing(answer, method) }
        .merge(fields, body(answer.body))
    end

    def framing(answer, method)
      return answer["transfer-encoding"] if answer["transfer-encoding"]
      return "none" unless (length = answer["content-length"])

      method == "HEAD" ? "length #{length}" : "length"
    end

    # Parts of an env, by its keys.
    def body(text)
      return { "body" => text } unless text.start_with?("{")

      JSON.parse(text).to_h { |key, value| ["env #{key}", value.to_s] }
    end
  end
end
