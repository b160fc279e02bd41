# frozen_string_literal: true

require "fileutils"
require "io/wait"

module StaticFiles
  # wfuzz's lists of paths that lead out of a folder, the outside files that they lead to, and the check if a server has sent
  # one.
  module Traversal
    LISTS = "/usr/share/wfuzz/wordlist"
    NAMES = %w[Injections/Traversal.txt vulns/dirTraversal.txt vulns/dirTraversal-nix.txt vulns/dirTraversal-win.txt].freeze

    # Targets of the lists. A few steps above the folder they are canaries, farther up the system's own files.
    WANTED = %w[etc/passwd etc/shadow etc/hosts boot.ini localstart.asp conf/server.xml canary.txt].freeze
    SECRET = "a canary, which no server may send\n"

    # Depth of the folder: the lists climb eight steps, and some of them twelve.
    FOLDER = "1/2/3/4/5/6/7/8/public"

    class << self
      # Returns the reason why this cannot run here; nil if it can.
      def unavailable
        "wfuzz is not installed" unless NAMES.all? { |name| File.exist?(File.join(LISTS, name)) }
      end

      # Every payload once. `{FILE}` is the canary.
      def payloads
        lines = NAMES.flat_map { |name| File.binread(File.join(LISTS, name)).split(/\r?\n/) }
        lines.grep_v(/\A(#|\z)/).map { |line| line.gsub("{FILE}", "canary.txt") }.uniq
      end

      # Request targets: each payload at the root, below an existing folder, and as it is.
      def targets = payloads.flat_map { |payload| ["/#{payload}", "/css/#{payload}", payload] }.uniq

      # Makes FOLDER in +directory+, with canaries in every folder above it; returns its path.
      def create(directory)
        File.join(directory, FOLDER).tap do |folder|
          above = File.dirname(folder)
          until above == File.dirname(directory)
            WANTED.each { |name| put(File.join(above, name), SECRET) }
            above = File.dirname(above)
          end
          put(File.join(folder, "index.html"), "<!doctype html><title>Public</title>")
          put(File.join(folder, "css/site.css"), "p { color: red }\n")
        end
      end

      # Returns true if this response contains a canary, or a system file of the lists.
      def hit?(answer) = secrets.any? { |secret| answer.include?(secret) }

      private

      def put(path, content)
        FileUtils.mkdir_p(File.dirname(path))
        File.write(path, content)
      end

      def secrets
        @secrets ||= [SECRET.chomp.b, *%w[/etc/passwd /etc/shadow /etc/hosts].filter_map { |path| first_line(path) }]
      end

      # The first line that is long enough, if the file is readable.
      def first_line(path)
        File.foreach(path, chomp: true, mode: "rb").find { |line| line.size > 8 }
      rescue SystemCallError
        nil
      end
    end

    # Sends each target, byte for byte, in a request of its own, and counts the responses.
    class Run
      SECONDS = 20

      attr_reader :hits, :statuses

      # The block opens a connection.
      def initialize(targets, &connect)
        @connect = connect
        @hits = []
        @statuses = Hash.new(0)
        targets.each { |target| try(target) }
      end

      def total = statuses.values.sum

      # Number of responses with a status in +range+.
      def count(range) = statuses.sum { |status, times| range === status ? times : 0 } # rubocop:disable Style/CaseEquality

      private

      def try(target)
        answer = ask("GET #{target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        hits << target if Traversal.hit?(answer)
        statuses[answer[%r{\AHTTP/1\.1 (\d{3}) }, 1]&.to_i] += 1
      end

      # Returns all bytes until the end. A server may reset the connection after it has refused a request.
      def ask(request)
        answer = "".b
        socket = @connect.call
        socket.write(request)
        loop { answer << more(socket) }
      rescue EOFError, Errno::ECONNRESET, Errno::EPIPE
        answer
      ensure
        socket&.close
      end

      def more(socket)
        socket.wait_readable(SECONDS) or raise Errno::ETIMEDOUT
        socket.readpartial(65_536)
      end
    end
  end
end
