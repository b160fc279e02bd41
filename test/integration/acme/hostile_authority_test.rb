# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "json"
require "time"
require "support/acme_orders"
require "support/hostile_authority"
require "support/peak_memory"

# A broken or hostile authority: the number of requests in an attempt, their cost in memory, and the effect on the current
# certificate. crates/supervisor/src/acme/tests.rs tests the time of the next attempt.
class HostileAuthorityTest < Minitest::Test
  include Fairlead::Test::AcmeOrders
  include Fairlead::Test::Folders
  include Fairlead::Test::PeakMemory

  Authority = Fairlead::Test::HostileAuthority
  Reply = Authority::Reply
  Job = Fairlead::Acme::Job

  # Memory of the program and growth of this process, in KB.
  PROGRAM_MOST = 48 * 1024
  GROWTH_MOST = 32 * 1024

  def test_a_huge_problem_document_costs_little_and_controls_no_terminal
    body = "{\"type\": \"urn:ietf:params:acme:error:serverInternal\", \"detail\": \"\e]0;owned\a\e[2J"
    flood = lambda do |client|
      client.write("HTTP/1.1 503 x\r\ncontent-type: application/problem+json\r\ncontent-length: 157286400\r\n\r\n#{body}")
      2400.times { client.write("x" * 65_536) }
    end
    assert_refused(/is longer than 131072 bytes/, requests: 1) { |name| flood if name == :directory }
  end

  def test_escapes_in_a_problem_document_reach_no_log
    problem = JSON.generate(type: "urn:ietf:params:acme:error:mal\e[31mformed", detail: "a\e]0;owned\a\r\nb\u202e#{"x" * 5000}")
    assert_refused(/a\?\]0;owned\? b\?xxx+…/, requests: 1) { |name| Reply.new(403, {}, problem) if name == :directory }
  end

  def test_endless_answers_end
    { "body" => "HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n", "head" => "HTTP/1.1 200 x\r\n" }.each do |part, head|
      flood = lambda do |client|
        client.write(head)
        loop { client.write(part == "body" ? "10000\r\n#{"x" * 65_536}\r\n" : "field: #{"x" * 8000}\r\n") }
      end
      assert_refused(/is longer than|cannot reach|no response from/, requests: 1) { |name| flood if name == :directory }
    end
  end

  def test_bytes_that_are_no_text_cost_neither_the_type_nor_the_time_to_wait
    limited = Reply.new(429, { "retry-after" => "7200" }, "{\"type\": \"urn:ietf:params:acme:error:rateLimited\", \"detail\": \"too \xff many\"}")
    result = assert_refused(/too . many \(rateLimited\)/, requests: 5) { |name| limited if name == :order }

    assert_equal 7200, result[:retry_after]
  end

  def test_nobody_is_led_elsewhere
    elsewhere = Authority.new
    reply = Reply.new(302, { "location" => elsewhere.directory }, "")
    assert_refused(/redirects to another address/, requests: 1) { |name| reply if name == :directory }

    assert_empty elsewhere.asked
  ensure
    elsewhere&.close
  end

  def test_nonces_that_are_never_good_are_not_tried_for_ever
    reply = Reply.new(400, {}, JSON.generate(type: "urn:ietf:params:acme:error:badNonce", detail: "again"))
    assert_refused(/badNonce/, requests: 30) { |name| reply if name == :order }
  end

  def test_addresses_that_are_none_are_a_problem
    ["::none", "http://127.0.0.1/nonce", "/nonce", "https://", "https://[::1/"].each do |address|
      reply = Reply.new(200, {}, JSON.generate(newNonce: address, newAccount: address, newOrder: address))
      assert_refused(/authority/, requests: 1) { |name| reply if name == :directory }
    end
  end

  # The timeout of an order is three seconds here, instead of ten minutes.
  def test_an_authority_that_is_silent_slow_or_undecided_is_given_up
    drip = lambda do |client|
      client.write("HTTP/1.1 200 x\r\ncontent-length: 1000\r\n\r\n")
      200.times { client.write("x") && sleep(0.05) }
    end
    processing = Reply.new(200, {}, JSON.generate(status: "processing", authorizations: [], finalize: "https://127.0.0.1:1/"))
    placed = false
    {
      silent: ->(name) { ->(_) { sleep(30) } if name == :nonce },
      slow: ->(name) { drip if name == :directory },
      undecided: ->(name) { processing if name == :finalize ? (placed = true) : (placed && name == :order) }
    }.each do |about, script|
      assert_refused(/longer than 3 s/, requests: 20, limit: 3, about: about, &script)
    end
  end

  # HEAD responses have no body, whatever the fields say.
  def test_a_nonce_with_a_type_and_a_length_is_good
    assert_issued { |name| Reply.new(200, { "content-length" => 100 }, "") if name == :nonce }
  end

  def test_an_address_may_be_one_of_ipv6
    assert_issued("::1")
  end

  def test_nothing_takes_the_place_of_a_good_certificate_that_is_none
    {
      "DER" => ->(pem) { OpenSSL::X509::Certificate.new(pem).to_der },
      "a cut chain" => ->(pem) { pem[0, pem.size - 100] },
      "a chain of strangers" => ->(pem) { pem[/.*?END CERTIFICATE-----\n/m] + pem("b.example")[/-----BEGIN CERTIFICATE.*/m] },
      "for another key" => ->(_) { pem("a.example")[/-----BEGIN CERTIFICATE.*/m] },
      "nothing" => ->(_) { "" },
      "the root" => ->(pem) { pem.sub(/.*?END CERTIFICATE-----\n/m, "") }
    }.each do |name, mangle|
      assert_refused(/certificate/, requests: 9, about: name, prepare: ->(authority) { authority.mangle = mangle })
    end
  end

  def test_a_certificate_for_another_time_is_refused
    day = Authority::DAY
    { "not valid before" => [day, 90 * day], "has expired" => [-2 * day, -day] }.each do |words, life|
      assert_refused(/#{words}/, requests: 9, prepare: ->(authority) { authority.life = life.map { |seconds| Time.now + seconds } })
    end
  end

  # With and without a due renewal: the current certificate lasts ten minutes.
  def test_a_certificate_that_ends_earlier_than_the_one_in_use_is_refused
    [[-3600, 590], [-1, 590]].each do |life|
      prepare = ->(authority) { authority.life = life.map { |seconds| Time.now + seconds } }
      assert_refused(/it ends at .* earlier than the certificate in use/, requests: 9, prepare: prepare)
    end
  end

  # The authority is about to revoke the current certificate.
  def test_a_certificate_that_ends_earlier_replaces_one_that_the_authority_recalls
    with_authority(Authority.new) do |authority, wanted, store|
      day = Authority::DAY
      store.folder.write(*store.certificate(wanted), pem("a.example", begins: Time.now - day, ends: Time.now + (89 * day)))
      authority.life = [Time.now - (40 * day), Time.now + day]

      assert_match(/earlier than the certificate in use/, attempt(wanted, store, recalled: true)[:message])
      authority.life = [Time.now, Time.now + (45 * day)]

      assert_match(/earlier than the certificate in use/, attempt(wanted, store)[:message])
      assert_equal({ outcome: "issued" }, attempt(wanted, store, recalled: true))
      assert_operator used(wanted, store).expires_at, :<, Time.now + (46 * day)
    end
  end

  # There is no request for a certificate that could not be kept.
  def test_a_folder_that_takes_nothing_asks_nobody
    in_the_way = ->(path) { FileUtils.mkdir_p(File.dirname(path, 2)) && File.write(File.dirname(path), "") }
    assert_refused(/nothing can be kept in acme_dir/, requests: 0, keep: false, before: in_the_way)
  end

  def test_a_token_names_no_other_file
    authorization = { identifier: { type: "dns", value: "a.example" }, status: "pending",
                      challenges: [{ type: "http-01", url: "https://127.0.0.1:1/", token: "../../../x", status: "pending" }] }
    assert_refused(/has sent the token/, requests: 6) { |name| Reply.new(200, {}, JSON.generate(authorization)) if name == :authorization }
  end

  # The authority can suggest a renewal at any time.
  def test_an_authority_says_when_a_certificate_is_to_be_renewed
    window = { "start" => "2027-01-15T08:00:00Z", "end" => "2027-01-15T09:00:00Z" }
    reply = Reply.new(200, { "retry-after" => "1" }, JSON.generate(suggestedWindow: window))
    with_authority(Authority.new { |name| reply if name == :renewal }) do |authority, wanted, store|
      attempt(wanted, store)
      answer = Fairlead::Acme::Question.new(wanted, store, used(wanted, store)).run

      assert_equal [1_800_000_000, 1_800_003_600], answer.first(2)
      assert_includes 0..1, answer.last
      assert_equal [1, 1], authority.asked.tally.values_at(:finalize, :renewal)
    end
  end

  private

  # Asserts that an attempt fails with a matching reason and the current certificate stays. Returns the result.
  def assert_refused(reason, requests:, limit: nil, about: nil, keep: true, before: nil, prepare: nil, &script)
    with_authority(Authority.new(&script)) do |authority, wanted, store|
      prepare&.call(authority)
      path = store.path_of(wanted)
      before ? before.call(path) : FileUtils.mkdir_p(File.dirname(path))
      File.write(path, old = expiring) if keep
      result = nil
      program, growth = peak_memory { result = attempt(wanted, store, **{ limit: limit }.compact) }
      report_case(about, authority, program, growth)

      assert_equal "failed", result[:outcome], about
      assert_match reason, result[:message], about
      refute_match(/[\e\a\u202e]/, result[:message])
      assert_operator authority.asked.size, :<=, requests, "#{about} #{authority.asked.tally}"
      assert_operator program, :<=, PROGRAM_MOST
      assert_operator growth, :<=, GROWTH_MOST
      assert_equal old, File.read(path), about if keep
      return result
    end
  end

  def assert_issued(address = "127.0.0.1", &script)
    with_authority(Authority.new(address, &script)) do |authority, wanted, store|
      assert_equal({ outcome: "issued" }, attempt(wanted, store))
      assert_path_exists store.path_of(wanted), authority.asked.tally
    end
  end

  # Yields the authority, an order, and a Store.
  def with_authority(authority)
    in_folder do |folder|
      yield authority, order("a.example", directory: authority.directory, ca: authority.ca), Fairlead::Acme::Store.new(folder)
    end
  ensure
    authority.close
  end

  def attempt(wanted, store, **keywords) = Job.new(wanted, store, "http-01", replaces: used(wanted, store), **keywords).run

  # The current certificate.
  def used(wanted, store) = Fairlead::Acme::Certificate.parse(store.folder.read(*store.certificate(wanted)))

  # A certificate that is due for renewal.
  def expiring = pem("a.example", begins: Time.now - 3000, ends: Time.now + 600)

  def report_case(about, authority, program, growth)
    return unless ENV["SHOW"]

    puts format("%-75s %-24s %3d requests, program %d KB, growth %d KB", name, about, authority.asked.size, program, growth)
  end
end
