# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "net/http"
require "support/acme_orders"
require "support/acme_servers"

# Unusable state counts as missing. No authority responds here.
class AcmeDamagedStateTest < Minitest::Test
  include Fairlead::Test::AcmeOrders
  include Fairlead::Test::AcmeServers

  DIRECTORY = "https://127.0.0.1:1/dir"
  ORDER = "a.example?directory=#{DIRECTORY}&terms_of_service_agreed=true".freeze
  ARGUMENTS = ["-b", "ssl://127.0.0.1:0", "--acme-dir", "state", "--acme", ORDER, "--watch-certificates", "0.1"].freeze

  # The server once ended in this case, although it served plain HTTP.
  def test_a_server_starts_with_whatever_is_in_its_files
    { certificate: "-----BEGIN CERTIFICATE-----\nAAAA\n", failure: "[" * 5000, account: "{", account_key: "\xff" }.each do |kind, text|
      server = launch_with(kind => text)

      assert_equal "the application", Net::HTTP.get("127.0.0.1", "/", server.port), kind
      server.stop
    end
  end

  def test_it_starts_with_folders_where_files_ought_to_be
    server = launch_with(certificate: nil, failure: nil, account: nil, account_key: nil)

    assert_equal "the application", Net::HTTP.get("127.0.0.1", "/", server.port)
    assert_match(/counts as missing/, server.stderr)
  end

  # Each removes the folder.
  UNUSABLE = {
    "a file is in its place" => ->(state) { FileUtils.rm_rf(state) && File.write(state, "") },
    "others may write to it" => ->(state) { FileUtils.mkdir_p(state) && File.chmod(0o777, state) },
    **(Process.uid.zero? ? { "it belongs to another user" => ->(state) { FileUtils.mkdir_p(state) && File.chown(12_345, nil, state) } } : {}),
    "its lock is a folder" => ->(state) { FileUtils.rm_rf("#{state}/lock") && FileUtils.mkdir_p("#{state}/lock") }
  }.freeze

  UNUSABLE.each do |name, spoil|
    [[], ["-w", 1]].each do |flags|
      define_method(:"test_a_server_starts_and_restarts_while_#{name.tr(" ", "_")}#{flags.join("_")}") do
        server = own(Fairlead::Test::ServerProcess.new(APP, *ARGUMENTS, *flags))
        spoil.call(server.path("state"))
        server.start
        wait_for_error(server, /acme_dir: nothing can be kept in/)
        restart(server)

        assert_equal "the application", Net::HTTP.get("127.0.0.1", "/", server.port)
        wait_until("the log line of the new program") { server.stderr.scan("nothing can be kept in").size == 2 }
        FileUtils.rm_rf(server.path("state"))
        server.wait_for_output(/ordering a certificate for a.example/, seconds: 30)

        assert_equal 2, server.stderr.scan("nothing can be kept in").size
        assert_equal 0, server.stop.exitstatus
      end
    end
  end

  def test_a_check_refuses_a_folder_that_cannot_be_used
    UNUSABLE.except("its lock is a folder").each do |name, spoil|
      check = own(Fairlead::Test::ServerProcess.new(APP, "--check", *ARGUMENTS))
      spoil.call(check.path("state"))

      assert_equal 1, check.launch.wait_exit.exitstatus, name
      assert_match(/--acme-dir: nothing can be kept in \S+: /, check.stderr)
    end
  end

  # Like /var/lib/shop of the user shop, with a server that root starts.
  def test_root_reads_and_writes_nothing_where_links_of_another_user_lead
    skip "needs root" unless Process.uid.zero?
    server = own(Fairlead::Test::ServerProcess.new(APP, *ARGUMENTS, files: { "victim/file" => "", "shadow" => "root:$6$secret:19000\n" }))
    store = Fairlead::Acme::Store.new(server.path("state"))
    mine = order("a.example", directory: DIRECTORY)
    lead(store.folder.join(*store.certificate(mine)[0..-2]), server.path("victim"))
    lead(store.folder.join(*store.account(mine)), server.path("shadow"))
    lead(server.path("victim/a.example.failure.json"), server.path("shadow"))
    FileUtils.chown_R(12_345, nil, server.path("state"))
    server.start
    wait_for_error(server, /acme_dir: nothing can be kept in \S+state: .*belongs to another user/)

    refute_match(/secret/, server.log)
    assert_equal 0, server.stop.exitstatus
    assert_equal %w[a.example.failure.json file], Dir.children(server.path("victim")).sort
  end

  # The pipe has no writer, so reading it would never end.
  def test_a_pipe_in_place_of_a_file_keeps_nothing_from_going_on
    %i[certificate failure account account_key].each do |kind|
      server = own(Fairlead::Test::ServerProcess.new(APP, *ARGUMENTS))
      store = Fairlead::Acme::Store.new(server.path("state"))
      path = store.folder.join(*store.public_send(kind, order("a.example", directory: DIRECTORY)))
      FileUtils.mkdir_p(File.dirname(path))
      File.mkfifo(path)
      server.start
      server.wait_for_output(/ordering a certificate for a.example/, seconds: 30)

      assert_equal 0, server.stop.exitstatus, kind
    end
  end

  # While the server runs, the file of a valid certificate is deleted, then damaged: clients still get that certificate.
  def test_a_certificate_in_use_stays_when_its_file_goes
    server = launch_with(certificate: text = pem("a.example"))
    path = pem_file(server, "a.example")
    first = seen(server)
    server.wait_for_output(/acme: the certificate for a.example is valid until/)

    assert_equal OpenSSL::X509::Certificate.new(text).serial, first.serial
    File.unlink(path)
    wait_for_error(server, /a.example.pem has disappeared; the last usable certificate stays in use/)

    assert_equal first.to_der, seen(server).to_der
    File.write(path, text[0, 300])
    server.signal(:HUP)
    wait_for_error(server, /a.example.pem: .*; the last usable certificate stays in use/)

    assert_equal first.to_der, seen(server).to_der
    wait_until("the file", seconds: 30) { File.read(path) == text }
    refute_match(/ordering a certificate/, server.log)
  end

  def test_an_order_that_another_process_has_locked_is_told_of
    server = own(Fairlead::Test::ServerProcess.new(APP, *ARGUMENTS))
    Fairlead::Acme::Store.new(server.path("state")).exclusively_for(["a.example"]) do
      server.start
      server.wait_for_output(/acme: another process has locked the order for a.example in \S+state.locks; waiting/)

      refute_match(/ordering a certificate/, server.log)
    end
    server.wait_for_output(/ordering a certificate for a.example/, seconds: 30)

    assert_equal [1, 1], ["has locked", "ordering a"].map { |words| server.log.scan(words).size }
  end

  private

  def lead(link, target)
    FileUtils.mkdir_p(File.dirname(link))
    File.symlink(target, link)
    File.lchown(12_345, nil, link)
  end

  # +files+: kind of file in the Store => its text; nil for a folder.
  def launch_with(files)
    store = Fairlead::Acme::Store.new("/state")
    paths = files.transform_keys { |kind| File.join("state", *store.public_send(kind, order("a.example", directory: DIRECTORY))) }
    paths.transform_keys! { |path| paths[path] ? path : File.join(path, "kept") }
    serve(APP, *ARGUMENTS, files: paths.transform_values(&:to_s))
  end

  def restart(server)
    server.signal(:USR2)
    wait_until("the new program\n#{server.log}", seconds: 30) { server.stdout.match?(/ready in.* ready in|hot restart: done/m) }
  end

  def wait_for_error(server, pattern) = wait_until("the line #{pattern.inspect}\n#{server.log}", seconds: 20) { server.stderr.match?(pattern) }

  # Returns the certificate that a client gets.
  def seen(server)
    context = OpenSSL::SSL::SSLContext.new
    context.verify_mode = OpenSSL::SSL::VERIFY_NONE
    address = server.addresses.find { |one| one.start_with?("https") }
    client = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", Integer(address[/\d+\z/], 10)), context)
    client.sync_close = true
    client.hostname = "a.example"
    client.connect.peer_cert
  ensure
    client&.close
  end
end
