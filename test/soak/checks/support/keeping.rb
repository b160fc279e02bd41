# frozen_string_literal: true

require "json"
require "rbconfig"

# Several processes of keepers.rb against one server, and the application that they expect.
class Keeping
  PROGRAM = File.expand_path("keepers.rb", __dir__)

  # Notes each request that it runs: one line, one write, whichever process it is. Works for as long as it is asked to.
  APP = <<~'RUBY'
    RAN = File.open(File.expand_path("ran", __dir__), File::WRONLY | File::APPEND | File::CREAT)
    run(lambda do |env|
      number = env["PATH_INFO"].delete_prefix("/")
      next [200, {}, []] if number.empty?

      RAN.syswrite("#{number}\n")
      work = Integer(env["QUERY_STRING"], 10)
      sleep work / 1000.0 if work.positive?
      [200, { "content-type" => "text/plain" }, ["#{number}\n"]]
    end)
  RUBY

  PROCESSES = 2

  # +count+: requests in all; 0 for as many as there are until #finish. +pause+: see keepers.rb.
  def initialize(port, connections:, count: 0, pause: 0)
    @readers = Array.new(PROCESSES) do |index|
      numbers = [port, connections / PROCESSES, index, PROCESSES, count / PROCESSES, pause]
      IO.popen([RbConfig.ruby, PROGRAM, *numbers.map(&:to_s)], "r+")
    end
  end

  # Whether all of them have made their requests.
  def over? = @readers.all? { |reader| reader.wait_readable(0) }

  # Has them finish, and returns what they say, added up.
  def finish
    @readers.each(&:close_write)
    @readers.map { |reader| JSON.parse(reader.read) }.reduce { |one, other| one.merge(other) { |_, a, b| a + b } }
  ensure
    @readers.each(&:close)
  end

  # The numbers that the application has run more than once, and how many it has run. +path+: of its notes.
  def self.repeated(path)
    seen = "".b
    repeated = []
    total = 0
    File.foreach(path, chomp: true) do |line|
      number = Integer(line, 10)
      total += 1
      seen << ("\0" * [number - seen.bytesize + 1, 1 << 16].max) if number >= seen.bytesize
      repeated << number if seen.getbyte(number) == 1
      seen.setbyte(number, 1)
    end
    [repeated, total]
  end
end
