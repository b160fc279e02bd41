# frozen_string_literal: true

require "json"
require "rbconfig"
require "io/wait"

# Programs of https_clients/, each with many connections, half of them over TLS 1.2, half over TLS 1.3.
#
# A program gets the URL, the path of the authority's certificate and the number of its connections. For each line on standard input it
# makes a request on each connection, and prints its results as JSON: `answered`, `faults`, and `resumed`, if it can tell: connections with
# a resumed session. The first line makes it connect. Before a line `renew` it gives its connections up, and keeps their sessions.
class HttpsClients
  # The program has failed.
  class Failed < StandardError; end

  FOLDER = File.expand_path("https_clients", __dir__)
  GO = { "GO111MODULE" => "off", "GOTOOLCHAIN" => "local", "GOFLAGS" => nil }.freeze
  PROGRAMS = {
    "curl" => [RbConfig.ruby, "#{FOLDER}/curl.rb"], "Node" => ["node", "#{FOLDER}/node_client.js"],
    "Go" => [GO, "go", "run", "#{FOLDER}/client.go"], "Java" => ["java", "#{FOLDER}/Client.java"]
  }.freeze

  # Seconds for the results of a program.
  PATIENCE = 120

  # Programs that are installed.
  def self.names
    PROGRAMS.select { |_, command| system("command -v #{command.grep(String).first} >/dev/null") }.keys
  end

  attr_reader :name, :count

  def initialize(name, url, authority, count)
    @name = name
    @count = count
    @program = IO.popen([*PROGRAMS.fetch(name), url, authority, count.to_s], "r+")
  end

  def ask = @program.puts("ask")
  def renew = @program.puts("renew")

  # The results of the oldest request without them.
  def results
    raise Failed, "#{name} has not answered for #{PATIENCE} s" unless @program.wait_readable(PATIENCE)

    JSON.parse(@program.gets || raise(Failed, "#{name} has ended"))
  end

  def close = @program.close
end

# The same of Chromium: it keeps six connections for each host.
class ChromiumClients
  EACH = 6

  attr_reader :name, :count

  def self.missing = Fairlead::Test::Browser.missing

  # +hosts+: number of names of this machine.
  def initialize(port, hosts)
    @name = "Chromium"
    @count = hosts * EACH
    @browser = Fairlead::Test::Browser.new("--ignore-certificate-errors")
    @page = @browser.open("https://localhost:#{port}/")
    @urls = JSON.generate(Array.new(hosts) { |host| "https://h#{host}.localhost:#{port}/pause?" }.flat_map { |url| [url] * EACH })
    @turn = 0
  end

  def ask
    @turn += 1
    @found = Thread.new do
      @page.evaluate("Promise.all(#{@urls}.map((url, index) => fetch(url + `#{@turn}-${index}`).then(r => r.text(), e => String(e))))")
    end
  end

  def results
    found = @found.value
    { "answered" => found.count("hello"), "faults" => (found - ["hello"]).uniq.first(5) }
  end

  def close = @browser.quit
end
