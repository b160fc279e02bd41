# frozen_string_literal: true

# libcurl, through Fiddle. See ../https_clients.rb.
require "fiddle"
require "json"

# A connection of libcurl: a handle keeps one.
class Handle
  LIBRARY = Fiddle.dlopen("libcurl.so.4")
  SIZE = Fiddle::TYPE_SIZE_T
  POINTER = Fiddle::TYPE_VOIDP

  def self.function(name, *arguments, returns: Fiddle::TYPE_INT, **options) = Fiddle::Function.new(LIBRARY[name], arguments, returns, **options)

  INIT = function("curl_easy_init", returns: POINTER)
  SET = function("curl_easy_setopt", POINTER, Fiddle::TYPE_INT, Fiddle::TYPE_VARIADIC)
  PERFORM = function("curl_easy_perform", POINTER)
  ERROR = function("curl_easy_strerror", Fiddle::TYPE_INT, returns: POINTER)

  URL = 10_002
  CAINFO = 10_065
  WRITEFUNCTION = 20_011
  HTTP_VERSION = 84
  HTTP_VERSION_1_1 = 2
  SSLVERSION = 32
  VERSIONS = { "1.2" => 6 | 6 << 16, "1.3" => 7 | 7 << 16 }.freeze
  FRESH_CONNECT = 74
  NOSIGNAL = 99
  TIMEOUT = 13

  def initialize(url, authority, version)
    @handle = INIT.call
    @body = "".b
    @closure = Fiddle::Closure::BlockCaller.new(SIZE, [POINTER, SIZE, SIZE, POINTER]) do |data, size, count, _|
      @body << data[0, size * count]
      size * count
    end
    { URL => url, CAINFO => authority, WRITEFUNCTION => @closure }.each { |option, value| set(option, POINTER, value) }
    { HTTP_VERSION => HTTP_VERSION_1_1, SSLVERSION => VERSIONS.fetch(version), NOSIGNAL => 1, TIMEOUT => 60 }.each do |option, value|
      number(option, value)
    end
  end

  # Returns the body, or a fault.
  def ask
    @body.clear
    code = PERFORM.call(@handle)
    code.zero? ? @body : ERROR.call(code).to_s
  end

  # Has the next request use another connection. curl offers its session.
  def renew = number(FRESH_CONNECT, 1)

  private

  def number(option, value) = set(option, Fiddle::TYPE_LONG, value)
  def set(option, type, value) = SET.call(@handle, option, type, value)
end

url, authority, count = ARGV
handles = Array.new(Integer(count, 10)) { |index| Handle.new(url, authority, %w[1.2 1.3][index % 2]) }
$stdout.sync = true
$stdin.each_line do |line|
  handles.each(&:renew) if line.chomp == "renew"
  answers = handles.map(&:ask)
  puts JSON.generate(answered: answers.count("hello"), faults: (answers - ["hello"]).uniq.first(5))
end
