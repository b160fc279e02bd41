# frozen_string_literal: true

require "json"
require "rbconfig"

# Several processes of keepers.rb against one server, and the application for them.
class Keeping
  PROGRAM = File.expand_path("keepers.rb", __dir__)

  # Writes the number of each request that it runs: one line, one write, in any process. Works for the demanded time.
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

  # +count+: requests in all; 0 for a run until #finish. +pause+: see keepers.rb.
  def initialize(port, connections:, count: 0, pause: 0)
    @readers = Array.new(PROCESSES) do |index|
      numbers = [port, connections / PROCESSES, index, PROCESSES, count / PROCESSES, pause]
      IO.popen([RbConfig.ruby, PROGRAM, *numbers.map(&:to_s)], "r+")
    end
  end

  # Returns true if all of them have made their requests.
  def over? = @readers.all? { |reader| reader.wait_readable(0) }

  # Lets them finish, and returns the sum of their results.
  def finish
    @readers.each(&:close_write)
    @readers.map { |reader| JSON.parse(reader.read) }.reduce { |one, other| one.merge(other) { |_, a, b| a + b } }
  ensure
    @readers.each(&:close)
  end

  # Numbers of the requests that the application has run more than once, and the number of all that it has run. +path+: the
  # application's file.
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
