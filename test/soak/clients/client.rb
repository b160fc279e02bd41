# frozen_string_literal: true

require_relative "../pattern"
require_relative "../../support/http_client"

module Fairlead
  module Soak
    module Clients
      # A client of one kind, from its first connection to its last: sends requests, checks the responses, and records the
      # outcome. A kind is a subclass with #run.
      class Client
        # The server has refused because it is full, which is correct if descriptors are short.
        class Refused < StandardError; end

        # The server has failed, which is correct only while the application holds all descriptors.
        class Failed < StandardError; end

        HttpClient = Test::HttpClient

        # A connection, and the next one if the server has announced the end of this one. It may do so when its process ends.
        class Connection < Test::HttpClient
          # The block opens the next connection.
          def initialize(socket, seconds:, &another)
            super(socket, seconds: seconds)
            @another = another
          end

          def answer(**)
            super.tap { |answer| @over = answer["connection"] == "close" }
          end

          def write(bytes)
            renew if @over && bytes.match?(%r{\A[A-Z]+ /}n)
            super
          end

          private

          def renew
            close
            @over = false
            @received = "".b
            @socket = @another.call
          end
        end

        class << self
          # Declares a kind, and its number of clients as a share of all.
          def share(number = nil)
            return @share unless number

            Client.all << self
            @share = number
          end

          # Its name in the statistics.
          def kind = @kind ||= name[/\w+\z/].gsub(/(?<!\A)[A-Z]/) { |letter| "_#{letter}" }.downcase

          # All kinds.
          def all = @all ||= []
        end

        # +number+: its number among all clients; its requests follow from it and from +seed+.
        def initialize(site, seed, number)
          @site = site
          @number = number
          @random = Random.new((seed * 1_000_003) + number)
          @next_id = number << 12
          @clients = []
          @addresses = []
        end

        # Runs the client; returns [outcome, text].
        def call
          @began = Test::Waiting.monotonic
          run
          [:right, nil]
        rescue Pattern::Mixed => e
          [:mixed, e.message]
        rescue Pattern::Wrong, *mistakes => e
          [:wrong, "#{e.message} (#{@last})"]
        rescue Refused => e
          [:excused, e.message]
        rescue *losses => e
          [excused? ? :excused : :lost, "#{e.class.name[/\w+\z/]}: #{e.message[0, 300]} (#{@addresses.join(", ")}, #{@last})"]
        rescue StandardError => e
          [:broken, e.full_message(highlight: false)]
        ensure
          @clients.each { |client| client.close unless client.socket.closed? }
        end

        private

        attr_reader :random, :site

        # Exceptions of its helpers if the server violates the protocol, and if the server disconnects.
        def mistakes = [HttpClient::MalformedAnswer]
        def losses = [HttpClient::CutOff, Test::Waiting::Expired, SystemCallError, IOError, Failed]

        # Returns true if an act of the soak explains the missing response.
        def excused?
          @addresses.any? { |address| site.taken?(address) || site.left_behind?(address) } ||
            site.scarce_since?(@began) || site.alone_and_restarted_since?(@began)
        end

        # Returns a connection from its own address.
        def connect
          from = @from = "127.#{random.rand(1..250)}.#{random.rand(256)}.#{random.rand(1..250)}"
          Connection.new(open_socket(from), seconds: Site::PATIENCE) { open_socket(from) }.tap { |client| @clients << client }
        end

        def open_socket(from)
          socket = TCPSocket.new("127.0.0.1", site.port, from, 0)
          @addresses << "#{from}:#{socket.local_address.ip_port}"
          socket
        end

        # Returns a number for a request.
        def new_id = @next_id += 1

        # The text of a request to the application.
        def request(name, id, parameters = {}, fields = {}, method: "GET", body: nil)
          @last = "#{name} #{parameters}"
          query = { "id" => format("%x", id), **parameters }.map { |pair| pair.join("=") }.join("&")
          fields = { "host" => "soak", "x-from" => @from, **fields }
          fields["cookie"] = Pattern.bytes(id, size(1000, 50_000)) if chance?(0.03)
          fields["content-length"] = body.bytesize if body && !fields.key?("transfer-encoding")
          lines = fields.map { |field, value| "#{field}: #{value}\r\n" }
          "#{method} /#{name}?#{query} HTTP/1.1\r\n#{lines.join}\r\n".b
        end

        # Sends one request on this connection, and checks the response.
        def get(client, name, parameters = {}, fields = {}, size: 200)
          id = new_id
          client.write(request(name, id, { "size" => size, **parameters }, fields))
          expect(client.final_answer, id, size)
        end

        # Checks that a response has everything for the request of this number.
        def expect(answer, id, size)
          expect_owner(answer, id)
          Pattern.check(answer.body, id, size)
          answer
        end

        # Checks that the application has responded, and to this request.
        def expect_owner(answer, id, status: 200)
          refuse(answer) if answer["x-id"].nil?
          raise Pattern::Mixed, "the response to #{format("%x", id)} has the number #{answer["x-id"]}" unless answer["x-id"] == format("%x", id)
          raise Failed, "the application had no descriptor" if answer["x-starved"]
          raise Pattern::Wrong, "status #{answer.status}" unless answer.status == status
        end

        # The server has responded without the application.
        def refuse(answer) = excuse(answer.status, answer.body)

        def excuse(status, body = nil)
          raise Refused, "status #{status}" if site.limited? && [503, 507].include?(status)
          raise Failed, "status #{status}" if site.limited? && status >= 500

          raise Pattern::Wrong, "status #{status} from the server#{": #{body[0, 200].inspect}" if body}"
        end

        def chance?(part) = random.rand < part

        # A random size between the two, more often a small one.
        def size(least, most) = (least * ((most.to_f / least)**random.rand)).round

        def pick(*choices) = choices.sample(random: random)
      end
    end
  end
end
