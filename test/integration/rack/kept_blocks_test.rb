# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"
require "support/rack_apps"

# Objects that the server lends to an application for one call (the blocks of each, `rack.hijack`, `rack.early_hints`) and
# that the application keeps: a late use raises, and no client gets any of it.
class KeptBlocksTest < Minitest::Test
  include Fairlead::Test::HttpServing
  include Fairlead::Test::Processes

  parallelize_me!

  SETUP = <<~'RUBY'
    # Keeps the block of its call, under a name.
    class Keeper
      KEPT = {}

      # Calls a kept object, and returns the result.
      def self.use(name, *arguments)
        KEPT.fetch(name).call(*arguments)
        "nothing was raised"
      rescue IOError => e
        e.class.name
      end

      def initialize(name, &code)
        @name = name
        @code = code || ->(block) { block.call("kept") }
      end

      def each(&block)
        KEPT[@name] = block
        @code.call(block)
      end
    end
  RUBY

  LATE = "Fairlead::FinishedError"

  # Ways to leave each => response to the client.
  WAYS = { "nil" => "kept", "raise('no')" => nil, "throw(:away)" => nil, "Thread.current.kill" => nil, "exit" => nil, "[].fetch(1)" => nil }.freeze

  def test_a_block_that_is_called_after_its_answer_raises
    WAYS.each do |way, body|
      server = keeping(<<~RUBY)
        case env["PATH_INFO"]
        when "/keep" then [200, {}, Keeper.new("body") { |block| block.call("kept"); #{way} }]
        else [200, {}, [Keeper.use("body", "late")]]
        end
      RUBY
      assert_kept(server, body)
      3.times { assert_equal LATE, get(server, "/use").body, way }
    end
  end

  def test_so_does_one_that_a_rescue_has_left_behind_in_the_same_answer
    server = keeping(<<~RUBY)
      body = Keeper.new("body")
      body.define_singleton_method(:close) { Notes.add(Keeper.use("body", "late")) }
      [200, {}, body]
    RUBY

    assert_equal "kept", get(server).body
    assert_equal [LATE], wait_for_notes(server, 1)
  end

  def test_nothing_reaches_the_client_of_another_request
    server = keeping(<<~RUBY, "-t", 1)
      case env["PATH_INFO"]
      when "/keep" then [200, {}, Keeper.new("body")]
      when "/blind" then [200, {}, Enumerator.new { |out| out << "mine"; Keeper::KEPT.fetch("body").call("secret") }]
      when "/careful" then [200, {}, Enumerator.new { |out| out << Keeper.use("body", "secret") }]
      end
    RUBY
    get(server, "/keep")
    20.times do
      assert_equal "HTTP/1.1 200 OK", (cut = connect(server).request("GET", "/blind").rest)[/\A.*?(?=\r)/]
      refute_includes cut, "secret"
      assert_equal LATE, get(server, "/careful").body
    end
    server.wait_for_output(/\(#{LATE}\)/)
  end

  def test_the_block_of_headers_belongs_to_the_call_that_was_given_it
    server = keeping(<<~RUBY)
      if env["PATH_INFO"] == "/keep"
        headers = Keeper.new("head") { |block| block.call("x-mine", "1") }
        [200, headers, Enumerator.new { |out| out << Keeper.use("head", "x-late", "1") }]
      else
        [200, Keeper.new("other") { |block| block.call("x-outcome", Keeper.use("head", "x-late", "1")) }, ["used"]]
      end
    RUBY
    kept = get(server, "/keep")
    used = get(server, "/use")

    assert_equal ["1", LATE, nil], [kept["x-mine"], kept.body, kept["x-late"]]
    assert_equal [LATE, "used", nil], [used["x-outcome"], used.body, used["x-late"]]
  end

  def test_the_callables_of_another_request
    server = keeping(<<~RUBY, "--early-hints")
      case env["PATH_INFO"]
      when "/keep"
        Keeper::KEPT.update("hijack" => env["rack.hijack"], "hints" => env["rack.early_hints"])
        [200, {}, ["kept"]]
      when "/hijack" then [200, {}, [Keeper.use("hijack")]]
      when "/hints" then [200, {}, [Keeper.use("hints", "link" => "late")]]
      end
    RUBY
    assert_equal "kept", get(server, "/keep").body

    assert_equal [LATE, LATE], [connect(server).get("/hijack").body, connect(server).get("/hints").body]
  end

  def test_rack_hijack_ends_with_the_call_of_the_application
    server = keeping(<<~RUBY)
      Keeper::KEPT["hijack"] = env["rack.hijack"]
      [200, {}, Enumerator.new { |out| out << Keeper.use("hijack") }]
    RUBY

    assert_equal LATE, get(server).body
  end

  def test_a_thread_that_goes_on_when_the_thread_of_the_request_has_left
    WAYS.each_key do |way|
      server = keeping(<<~RUBY, "--threads", "1:1")
        next [200, {}, ["plain"]] if env["PATH_INFO"] == "/"

        body = Keeper.new("body") do |block|
          block.call("began")
          Thread.new { sleep 0.001 until File.exist?("go"); Notes.add(Keeper.use("body", "x" * 100_000)) }
          #{way}
        end
        [200, {}, body]
      RUBY
      # Its only thread responds when it has left the request.
      connect(server).request("GET", "/leave").read_through("began")
      wait_until("the request to be over") { get(server).body == "plain" }
      server.write("go", "")

      assert_equal [LATE], wait_for_notes(server, 1), way
      assert_equal "plain", get(server).body
    end
  end

  # Limits so low that a large write has to wait for its client.
  IMPATIENT = ["--response-disk-bytes", "0", "--response-memory-bytes", "64k"].freeze

  WAITING = <<~RUBY
    next [200, {}, ["plain"]] if env["PATH_INFO"] == "/"

    body = Keeper.new("body") do |block|
      Thread.new { Notes.add("began"); Notes.add(Keeper.use("body", Random.new(1).bytes(8_000_000))) }
      sleep 0.01 until File.exist?("go")
      %s
    end
    [200, { "content-type" => "text/plain" }, body]
  RUBY

  def test_a_thread_that_waits_for_the_client_when_the_request_leaves
    [[], ["--compress"]].each do |more|
      WAYS.each_key do |way|
        next if way == "nil"

        server = keeping(format(WAITING, way), *IMPATIENT, *more)
        client = narrow_client(server).request("GET", "/wait", { "accept-encoding" => "gzip" })
        wait_for_notes(server, 1)
        client.read_through("\r\n\r\n")
        server.write("go", "")

        assert_equal ["began", LATE], wait_for_notes(server, 2), way
        client.rest
        assert_equal "plain", get(server).body
      end
    end
  end

  def test_the_answer_waits_for_a_thread_that_is_in_the_middle_of_a_string
    server = keeping(format(WAITING, "nil"), *IMPATIENT)
    client = narrow_client(server).request("GET", "/wait")
    wait_for_notes(server, 1)
    assert client.readable?(20), "the thread has begun to write"
    server.write("go", "")

    assert_equal 8_000_000, client.answer.body.bytesize
    assert_equal ["began", "nothing was raised"], wait_for_notes(server, 2)
  end

  def test_a_fiber_that_is_never_resumed
    server = keeping(<<~RUBY, "--early-hints")
      if env["PATH_INFO"] == "/keep"
        hints = Keeper.new("hints") { |block| block.call("x-hint", "1"); Fiber.yield }
        ($fibers ||= []) << Fiber.new { env["rack.early_hints"].call(hints) }
        $fibers.last.resume
        body = Keeper.new("body") { |block| Fiber.new { block.call("kept"); Fiber.yield }.resume }
        [200, {}, body]
      else
        [200, {}, [Keeper.use("hints", "x-late", "1"), Keeper.use("body", "late")]]
      end
    RUBY
    2.times do
      assert_equal "kept", get(server, "/keep").body
      assert_equal LATE * 2, get(server, "/use").body
    end
  end

  def test_a_process_that_was_forked_has_no_answer
    server = keeping(<<~RUBY)
      body = Keeper.new("body") do |block|
        block.call("parent")
        Thread.new { Process.wait(fork { Notes.add(Keeper.use("body", "child")); exit!(0) }) }.join
        Process.wait(fork { Notes.add(Keeper.use("body", "child")); exit!(0) })
      end
      [200, {}, body]
    RUBY

    assert_equal "parent", get(server).body
    assert_equal [LATE, LATE], wait_for_notes(server, 2)
  end

  def test_with_a_collector_that_runs_and_moves_all_the_time
    server = keeping(<<~'RUBY', "--early-hints", "-t", 2)
      GC.verify_compaction_references(toward: :empty, double_heap: false) if env["PATH_INFO"] == "/compact"
      next [200, {}, ["done"]] if env["PATH_INFO"] == "/compact"

      number = env["PATH_INFO"][/\d+/].to_i
      used = number.zero? ? [] : { "body" => 1, "head" => 2, "hijack" => 0, "hints" => 1 }.map { |name, count| Keeper.use("#{name}#{number - 1}", *["x"] * count) }
      GC.stress = true
      Keeper::KEPT.update("hijack#{number}" => env["rack.hijack"], "hints#{number}" => env["rack.early_hints"])
      env["rack.early_hints"].call(Keeper.new("hint#{number}") { |block| block.call("x-hint", +"1") })
      headers = Keeper.new("head#{number}") { |block| block.call(+"x-used", used.join(",")) }
      body = Keeper.new("body#{number}") { |block| 3.times { |n| block.call("part #{n} ") } }
      body.define_singleton_method(:close) { GC.stress = false }
      [200, headers, body]
    RUBY
    compacts = GC.respond_to?(:verify_compaction_references) && GC.respond_to?(:compact)
    6.times do |number|
      answer = connect(server).request("GET", "/#{number}").final_answer
      assert_equal "part 0 part 1 part 2 ", answer.body
      assert_equal ([LATE] * 4).join(","), answer["x-used"] unless number.zero?
      assert_equal "done", get(server, "/compact").body if compacts
    end
  end

  private

  def keeping(code, *arguments) = serve(unlinted(code, setup: SETUP), *arguments)

  # Makes a request keep a block; its client gets +body+, or its connection is cut.
  def assert_kept(server, body)
    return assert_equal(body, get(server, "/keep").body) if body

    assert_raises(Fairlead::Test::HttpClient::CutOff) { get(server, "/keep") }
  end
end
