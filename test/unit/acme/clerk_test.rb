# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "support/acme_orders"

# Tasks of the supervisor, with an Array as the link.
class AcmeClerkTest < Minitest::Test
  include Fairlead::Test::AcmeOrders
  include Fairlead::Test::Folders
  include Fairlead::Test::Waiting

  Clerk = Fairlead::Acme::Clerk
  Message = Fairlead::Link::Message
  Listener = Struct.new(:address)
  Service = Struct.new(:configuration, :listeners, :log)

  # Keeps the sent messages: kinds, fields, and contents of the files.
  class Link
    attr_reader :sent

    def initialize
      @sent = Thread::Queue.new
    end

    def send(kind, *fields, ios: [])
      sent << [kind, fields, ios.map { |io| io.pread(io.stat.size, 0) }]
      true
    end

    alias send_soon send
  end

  # Replaces Acme::Job.
  Job = Struct.new(:result) do
    def run
      yield
      result.respond_to?(:call) ? result.call(self) : result
    end

    def stop = @stopped = true
    def stopped? = @stopped == true
  end

  def test_it_introduces_the_orders
    with_clerk("a.example", "b.example") do |clerk, store|
      assert clerk.introduce
      kind, _, texts = @link.sent.pop
      orders = JSON.parse(texts.first)

      assert_equal [:acme_orders, store.folder.path], [kind, orders["folder"]]
      assert_equal([["a.example"], ["b.example"]], orders["orders"].map { |one| one["hosts"] })
      assert_equal "acme-v02.api.letsencrypt.org", orders["orders"].first["authority"]
    end
  end

  def test_a_look_answers_with_facts_and_the_text
    with_clerk("a.example") do |clerk, store|
      store.folder.write(*store.certificate(order("a.example")), text = pem("a.example"))
      answer, texts = ask(clerk, "look", {})

      assert_nil answer["unusable"]
      refute_nil answer["facts"]["certificate"]
      assert_equal [text], texts
      answer, texts = ask(clerk, "look", { token: answer["facts"]["token"] })

      assert_equal [nil, []], [answer["facts"], texts]
    end
  end

  def test_a_look_keeps_what_it_is_told
    with_clerk("a.example") do |clerk, store|
      answer, = ask(clerk, "look", { fail: { count: 1, reason: "refused", retry_at: 1000 }, restore: true }, text = pem("a.example"))

      assert_equal [nil, "written", "refused"], [answer["unwritten"], answer["restore"], answer["facts"]["failure"]["reason"]]
      assert_equal text, store.folder.read(*store.certificate(order("a.example")))
      answer, = ask(clerk, "look", { forget: true })

      assert_nil answer["facts"]["failure"]
      refute_path_exists store.folder.join(*store.failure(order("a.example")))
    end
  end

  def test_a_folder_that_cannot_be_used_has_a_reason_until_it_can
    with_clerk("a.example") do |clerk, store|
      File.chmod(0o777, store.folder.path)

      assert_match(/nothing can be kept in/, ask(clerk, "look", {}).first["unusable"])
      File.chmod(0o700, store.folder.path)

      assert_nil ask(clerk, "look", {}).first["unusable"]
    end
  end

  OUTCOMES = {
    { outcome: "issued" } => "issued", { outcome: "current" } => "issued", { outcome: "busy" } => "busy",
    { outcome: "failed", type: "x", message: "refused", retry_after: 7 } => { "failed" => { "message" => "refused", "retry_after" => 7 } }
  }.freeze

  def test_an_order_answers_with_its_outcome
    OUTCOMES.each do |result, outcome|
      with_clerk("a.example") do |clerk|
        answer, = place(clerk, result)

        assert_equal outcome, answer["outcome"]
        refute_nil answer["facts"]
        assert_match(/ordering a certificate for a.example from acme-v02.api.letsencrypt.org \(http-01\)/, @told.string)
      end
    end
  end

  def test_a_certificate_that_cannot_be_written_goes_to_the_supervisor_and_comes_back
    with_clerk("a.example") do |clerk, store|
      answer, texts = place(clerk, { outcome: "failed", type: "storage", message: "no room", text: text = pem("a.example") })

      assert_equal [true, [text]], [answer["held"], texts]
      answer, = ask(clerk, "order", { held: true }, text)

      assert_equal "issued", answer["outcome"]
      assert_equal text, store.folder.read(*store.certificate(order("a.example")))
    end
  end

  def test_an_order_that_another_process_has_locked_is_busy
    with_clerk("a.example") do |clerk, store|
      answer, = store.exclusively_for(["a.example"]) { ask(clerk, "order", {}) }

      assert_equal "busy", answer["outcome"]
    end
  end

  def test_the_listeners_decide_on_the_challenge_unless_the_order_does
    { "http" => "http-01", "https" => "tls-alpn-01" }.each do |scheme, challenge|
      with_clerk("a.example", scheme: scheme) { |clerk| place(clerk, { outcome: "busy" }) && assert_includes(@told.string, "(#{challenge})") }
    end
    with_clerk("a.example", challenge: "tls-alpn-01") { |clerk| place(clerk, { outcome: "busy" }) && assert_includes(@told.string, "(tls-alpn-01)") }
  end

  def test_the_end_ends_the_order_and_answers_nothing
    with_clerk("a.example") do |clerk|
      begun = Thread::Queue.new
      job = Job.new(->(one) { (begun << true) && wait_until("the end") { one.stopped? } && { outcome: "busy" } })
      Fairlead::Acme::Job.stub(:new, job) { send_task(clerk, "order", {}) }
      begun.pop
      clerk.close

      send_task(clerk, "look", {})

      assert_empty @link.sent
      assert_empty Thread.list.select { |thread| thread.name == "fairlead acme" }
    end
  end

  # A disk can hang. The supervisor sends the task again, and each time must not take another thread.
  def test_a_task_that_hangs_keeps_others_from_nothing_and_has_no_second_thread
    with_clerk("a.example", "b.example") do |clerk|
      gate = Thread::Queue.new
      job = Job.new(->(_) { gate.pop && { outcome: "busy" } })
      Fairlead::Acme::Job.stub(:new, job) { 3.times { send_task(clerk, "order", {}) } }

      assert_equal 1, Thread.list.count { |thread| thread.name == "fairlead acme" }
      assert ask(clerk, "look", {}).first["facts"]
      assert ask(clerk, "look", {}, host: "b.example").first["facts"]
      gate << true

      assert_equal "busy", answer_of(@link.sent.pop).first["outcome"]
    end
  end

  def test_an_error_is_logged_once_and_fails_the_task
    with_clerk("a.example") do |clerk|
      answers = Fairlead::Acme::Kept.stub(:new, ->(*, **) { raise NoMemoryError, "no memory" }) do
        Array.new(2) { ask(clerk, "order", {}).first }
      end

      assert_equal(["no memory"], answers.map { |answer| answer["outcome"]["failed"]["message"][/no memory/] }.uniq)
      assert_equal 1, @lines.string.scan("no memory (NoMemoryError)").size
    end
  end

  private

  def with_clerk(*hosts, scheme: "http", **keywords)
    in_folder do |folder|
      @orders = hosts.map { |host| order(host, **keywords) }
      configuration = Fairlead::Configuration.from_options(acme: @orders, acme_dir: folder)
      log = Fairlead::EventLog.new(output: @told = StringIO.new, errors: @lines = StringIO.new)
      clerk = Clerk.new(Service.new(configuration, [Listener.new({ scheme: scheme })], log), @link = Link.new)
      yield clerk, Fairlead::Acme::Store.new(folder)
      clerk.close
    end
  end

  def place(clerk, result) = Fairlead::Acme::Job.stub(:new, Job.new(result)) { ask(clerk, "order", {}) }

  # Sends a task; returns the reply and the texts that came with it.
  def ask(clerk, task, wish, text = nil, host: "a.example")
    send_task(clerk, task, wish, text, host: host)
    wait_until("a reply") { !@link.sent.empty? }
    answer_of(@link.sent.pop)
  end

  def send_task(clerk, task, wish, text = nil, host: "a.example")
    key = Fairlead::Acme::Failure.digest(@orders.find { |order| order.name == host })
    ios = [*text].map { |one| IO.for_fd(Fairlead::Native.memory_file("test", one)) }
    clerk.act_on(Message.new(:acme, ["7", task, key, JSON.generate(wish)], ios))
  end

  def answer_of((kind, (number, *json), texts))
    assert_equal [:acme, "7"], [kind, number]
    [JSON.parse(json.join), texts]
  end
end
