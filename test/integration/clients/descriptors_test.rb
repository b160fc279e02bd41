# frozen_string_literal: true

require "digest"
require "test_helper"
require "support/http_client"
require "support/processes"

# Clients that make the server open as many descriptors as it may: the application can always open files and sockets of its
# own, requests without a descriptor get an error or wait, and everything is closed again.
class DescriptorsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  LIMIT = 600
  # Part of the application's quarter of the limit.
  OWN = 130
  UPLOADS = 300
  BODY = Random.new(13).bytes(120_000)

  # More than the number of descriptors for files. A busy machine needs a while for so many bytes.
  DOWNLOADS = 160
  PATIENT = 600
  LARGE = 4_000_000

  # Opens files and sockets, and reports the result; or responds with the digest of a body. The limit is a hard one, because
  # the server raises the soft limit.
  APP = <<~RUBY.freeze
    require "digest/sha2"
    require "socket"
    own = lambda do
      opened = []
      #{OWN / 2}.times { opened << File.open(File::NULL) << Socket.new(:INET, :STREAM) }
      "all open"
    rescue SystemCallError => e
      e.class.name
    ensure
      opened.each(&:close)
    end
    run lambda { |env|
      next [200, {}, ["x" * #{LARGE}]] if env["PATH_INFO"] == "/large"
      body = env["REQUEST_METHOD"] == "POST" ? Digest::SHA256.hexdigest(env["rack.input"].read) : own.call
      [200, {}, [body]]
    }
  RUBY

  def test_uploads_leave_the_application_its_descriptors
    server = serve_with_few_descriptors
    assert_equal "all open", get(server).body
    before = descriptors(server.serving_pid)
    uploads = Array.new(UPLOADS) { begin_upload(server) }

    20.times { assert_equal "all open", get(server).body }
    uploads.each { |upload| upload.write(BODY[-1]) }
    digests = uploads.map { |upload| upload.answer.then { |answer| [answer.status, answer.body] } }
    assert_equal [[200, Digest::SHA256.hexdigest(BODY)]], digests.uniq
    assert_equal "all open", get(server).body
    uploads.each(&:close)
    wait_for_closed_descriptors(server.serving_pid, before)
    refute_match(/EMFILE|#{Errno::EMFILE.new}|BUG/, server.stderr)
  end

  def test_the_log_says_once_that_there_are_too_few_descriptors_for_slow_downloads
    server = serve_with_few_descriptors("--response-memory-total-bytes", "1g", "--write-timeout", PATIENT)
    downloads = Array.new(DOWNLOADS) { narrow_client(server).tap { |client| client.request("GET", "/large") } }
    assert_logged(/keeps responses to slow clients in memory: too few descriptors .* raise the limit of open files/, server, seconds: PATIENT)

    downloads.each { |download| assert_equal LARGE, download.answer.body.bytesize }
    assert_equal 1, server.stderr.scan("in memory").size
    refute_match(/temp_dir/, server.stderr)
  end

  def test_connections_leave_the_application_its_descriptors
    server = serve_with_few_descriptors
    witness = connect(server)
    assert_equal "all open", witness.get.body
    before = descriptors(server.serving_pid)
    answers = Array.new(LIMIT) { connect(server).tap { |client| ask_or_be_refused(client) } }.map { |client| status(client) }

    assert_equal [200, 503], answers.uniq, "in this order"
    assert_equal "all open", witness.get.body
    @clients.each { |client| client.close unless client.equal?(witness) }
    wait_for_closed_descriptors(server.serving_pid, before)
    assert_equal "all open", get(server).body
  end

  # The slot of a slow upload is not free forever, and a client that has waited too long for it has done nothing wrong.
  def test_an_upload_that_gets_no_descriptor_in_time_may_try_again
    server = serve_with_few_descriptors("--body-timeout", 1)
    holders = Array.new(UPLOADS) { begin_upload(server) }
    statuses = Hash.new(0)
    wait_until("the end of all clients") do
      holders.reject! { |client| client.readable? && (statuses[client.answer.status] += 1) }
      holders.empty?
    end

    assert_equal [408, 503], statuses.keys.sort
    assert_operator statuses[408], :>, 20
    assert_logged("503 (no descriptor", server)
  end

  private

  # Sends all but the last byte of an upload that is too large for memory.
  def begin_upload(server)
    client = connect(server)
    client.request("POST", "/", { "content-length" => BODY.bytesize })
    client.write(BODY[0..-2])
  end

  def ask_or_be_refused(client)
    client.request
  rescue SystemCallError
    nil
  end

  def status(client)
    client.answer.status
  end

  def serve_with_few_descriptors(*arguments)
    serve(APP, "-C", "few.rb", *arguments, files: { "few.rb" => "Process.setrlimit(:NOFILE, #{LIMIT}, #{LIMIT})" })
  end
end
