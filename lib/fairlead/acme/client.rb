# frozen_string_literal: true

module Fairlead
  module Acme
    # Signed requests to an authority (RFC 8555 §6). Raises a Problem if they are refused.
    class Client
      # How often a request is repeated because its nonce was not good any more.
      NONCES = 10

      # How long to wait for the authority to make up its mind, in seconds; and how long between two looks, if it does not say.
      PATIENCE = 300
      PAUSES = [0.25, 0.5, 1, 2, 4].freeze

      # The longest pause that it can ask for, in seconds.
      LONGEST_PAUSE = 30

      UNDECIDED = %w[pending processing].freeze

      attr_reader :key

      # The address of the account, once there is one.
      attr_accessor :account

      # +directory+: the address of the authority. +key+: an AccountKey. +connection+: a Connection.
      def initialize(directory, key, connection)
        @directory_url = directory
        @key = key
        @connection = connection
        @nonces = []
      end

      # The address for this purpose: "newOrder" and the like.
      def address(name)
        directory[name] || raise(Problem.new("malformed", "#{@directory_url} is no directory of an authority: it has no #{name}"))
      end

      # What the authority says of itself.
      def meta = directory["meta"] || {}

      # Posts +payload+, or asks for what is at +url+ if it is nil. Returns the Connection::Response.
      def post(url, payload = nil, accept: nil)
        text = payload ? JSON.generate(payload) : ""
        NONCES.times do |attempt|
          response = send_signed(url, text, accept)
          return response if response.success?

          problem = problem_of(response)
          raise problem unless problem.type == "badNonce" && attempt < NONCES - 1
        end
      end

      # What is at +url+ once the authority has made up its mind about it. +waiting+: the states in which it has not.
      def wait_for(url, waiting = UNDECIDED)
        deadline = now + PATIENCE
        (0..).each do |turn|
          response = post(url)
          return response.body unless waiting.include?(response.body["status"])
          raise Problem.new("timeout", "the authority has not decided within #{PATIENCE} s") if now > deadline

          sleep([response.retry_after || PAUSES[turn] || PAUSES.last, LONGEST_PAUSE].min)
        end
      end

      def close = @connection.close

      # A problem document (RFC 7807) as an exception.
      def self.problem(document, retry_after: nil, prefix: nil)
        type = document["type"].to_s.split(":").last || "unknown"
        parts = (document["subproblems"] || []).map { |part| "#{part.dig("identifier", "value")}: #{part["detail"]}" }
        details = [document["detail"], *parts].compact.map { |text| text.gsub(/\s+/, " ").strip }
        Problem.new(type, "#{prefix}#{details.join("; ")} (#{type})", retry_after: retry_after)
      end

      private

      def directory
        @directory ||= begin
          response = @connection.request("GET", @directory_url)
          raise problem_of(response) unless response.success?
          raise Problem.new("malformed", "#{@directory_url} is no directory of an authority") unless response.body.is_a?(Hash)

          response.body
        end
      end

      def send_signed(url, text, accept)
        header = { nonce: nonce, url: url, **(account ? { kid: account } : { jwk: key.to_h }) }
        response = @connection.request("POST", url, JSON.generate(key.sign(header, text)), accept: accept)
        @nonces << response.headers["replay-nonce"] if response.headers["replay-nonce"]
        response
      end

      def nonce
        @nonces.pop || @connection.request("HEAD", address("newNonce")).headers["replay-nonce"] ||
          raise(Problem.new("malformed", "the authority gives no nonce"))
      end

      def problem_of(response)
        return self.class.problem(response.body, retry_after: response.retry_after) if response.body.is_a?(Hash)

        Problem.new("serverInternal", "the authority has answered with status #{response.status}", retry_after: response.retry_after)
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
