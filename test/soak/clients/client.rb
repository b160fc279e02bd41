# frozen_string_literal: true

require_relative "../pattern"
require_relative "../../support/http_client"

module Fairlead
  module Soak
    module Clients
      # One client of one kind, from its first connection to its last: says what it wants, checks what it gets, and knows what
      # became of it. A kind is a subclass with #run.
      class Client
        # The server has said that it is full, which it may be when descriptors are short.
        class Refused < StandardError; end

        # It has failed, which it may only where the application has all descriptors.
        class Failed < StandardError; end

        HttpClient = Test::HttpClient

        class << self
          # Declares a kind: how many clients of it there are among so many of all.
          def share(number = nil)
            return @share unless number

            Client.all << self
            @share = number
          end

          # Its name in the figures.
          def kind = @kind ||= name[/\w+\z/].gsub(/(?<!\A)[A-Z]/) { |letter| "_#{letter}" }.downcase

          # The kinds there are.
          def all = @all ||= []
        end

        # +number+: its own among all; what it does follows from it and from +seed+.
        def initialize(site, seed, number)
          @site = site
          @number = number
          @random = Random.new((seed * 1_000_003) + number)
          @next_id = number << 12
          @clients = []
          @addresses = []
        end

        # Does what it has to do; returns [outcome, text].
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

        # What its helpers raise when the server has broken the protocol, and when it has left.
        def mistakes = [HttpClient::MalformedAnswer]
        def losses = [HttpClient::CutOff, Test::Waiting::Expired, SystemCallError, IOError, Failed]

        # Whether something that the soak did explains that an answer is missing.
        def excused?
          @addresses.any? { |address| site.taken?(address) } || site.scarce_since?(@began)
        end

        # A connection from an address of its own.
        def connect
          @from = "127.#{random.rand(1..250)}.#{random.rand(256)}.#{random.rand(1..250)}"
          socket = TCPSocket.new("127.0.0.1", site.port, @from, 0)
          @addresses << "#{@from}:#{socket.local_address.ip_port}"
          HttpClient.new(socket, seconds: Site::PATIENCE).tap { |client| @clients << client }
        end

        # A number for what is asked.
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

        # Asks for one thing on this connection, and checks that it comes.
        def get(client, name, parameters = {}, fields = {}, size: 200)
          id = new_id
          client.write(request(name, id, { "size" => size, **parameters }, fields))
          expect(client.final_answer, id, size)
        end

        # Checks an answer with all that a request of this number was to get.
        def expect(answer, id, size)
          expect_owner(answer, id)
          Pattern.check(answer.body, id, size)
          answer
        end

        # Checks that the application has answered, and this request.
        def expect_owner(answer, id, status: 200)
          refuse(answer) if answer["x-id"].nil?
          raise Pattern::Mixed, "the answer for #{format("%x", id)} says it is for #{answer["x-id"]}" unless answer["x-id"] == format("%x", id)
          raise Failed, "the application had no descriptor" if answer["x-starved"]
          raise Pattern::Wrong, "status #{answer.status}" unless answer.status == status
        end

        # The server has answered by itself.
        def refuse(answer) = excuse(answer.status, answer.body)

        def excuse(status, body = nil)
          raise Refused, "status #{status}" if site.limited? && [503, 507].include?(status)
          raise Failed, "status #{status}" if site.limited? && status >= 500

          raise Pattern::Wrong, "status #{status} from the server#{": #{body[0, 200].inspect}" if body}"
        end

        def chance?(part) = random.rand < part

        # A size between the two, small ones more often.
        def size(least, most) = (least * ((most.to_f / least)**random.rand)).round

        def pick(*choices) = choices.sample(random: random)
      end
    end
  end
end
