# frozen_string_literal: true

require "test_helper"
require "support/another_version"
require "support/certificates"
require "support/real_time"
require "support/staying/application"

# A hot restart to another version of Fairlead, with another layout of the shared memory: WebSockets, event streams and idle
# connections go on in its workers.
class NewReleaseClientsTest < Minitest::Test
  include Fairlead::Test::AnotherVersion
  include Fairlead::Test::RealTimeServing
  include Fairlead::Test::Secured

  CHANNELS = %w[mail kept].freeze

  def test_clients_notice_nothing_and_get_each_message_once
    server = versioned_server(2, app: Fairlead::Test::Staying::APPLICATION, files: certificate_files,
                                 config: %(bind "ssl://127.0.0.1:0?cert=cert.pem&key=key.pem"\n)) do |prepared|
      File.chmod(0o600, prepared.path("key.pem"))
    end
    sockets = Array.new(8) { web_socket(server, "/") }
    streams = Array.new(4) { event_stream(server, "/") }
    plain = Array.new(4) { Socket.tcp("127.0.0.1", server.port) }
    secured = %w[1.2 1.3].map { |version| relayed_tls_socket(server.ports.last, version: version) }
    idle = (plain + secured).map { |socket| Fairlead::Test::HttpClient.new(socket) }
    (sockets + streams).each { |client| assert_equal "ready", text_of(client) }
    idle.each { |client| assert_match(/\A1 /, client.get("/").body) }
    sent = publishing(server) do
      deploy_other_version(server)
      server.signal(:USR2)
      assert_other_version(server, workers: 2)
    end

    (sockets + streams).each { |client| assert_equal CHANNELS.to_h { |name| [name, [*1..sent]] }, heard(client, sent) }
    sockets.each { |client| assert_equal "answer 1 1 true", asked(client, "1 5 0") }
    idle.each { |client| assert_match(/\A2 /, client.get("/").body) }
    assert_empty server.stderr
    assert_ends(server)
  end

  private

  def text_of(client) = client.respond_to?(:send_text) ? client.receive.last : client.receive.data

  # The numbers that a client has heard, by channel.
  def heard(client, sent)
    texts = Array.new(sent * CHANNELS.size) { text_of(client).split }
    texts.group_by(&:first).transform_values { |words| words.map { |*, number| number.to_i }.sort }
  end

  def asked(client, text)
    client.send_text(text)
    client.receive.last
  end

  # Publishes numbers to each channel while the block runs. Returns the last one.
  def publishing(server)
    sent = 0
    ending = false
    publisher = Thread.new do
      until ending
        sent += 1
        CHANNELS.each { |channel| get(server, "/publish?#{channel}+#{sent}") }
      end
    end
    yield
    ending = true
    publisher.join
    sent
  end
end
