# frozen_string_literal: true

# The program of bin/support/tlsfuzzer. Runs scripts of tlsfuzzer, each against Fairlead and against a bare rustls server
# with the same certificate. A script is a list of conversations with their expected replies. Both servers must pass the same
# ones; a failure of both is the behaviour of rustls. Prints a line for each script and ends with "N passed, M failed".
#
#   ruby test/conformance/tls/tlsfuzzer.rb PYTHON TLSFUZZER BARE_SERVER [NAME…]

require "io/wait"
require "open3"
require "openssl"
require "support/server_process"

# The two servers, and the scripts.
class TlsfuzzerComparison
  # Names of scripts without "test-" and ".py". :dhe uses key exchanges with forward secrecy, :gcm also names a suite that
  # rustls has. Left out: scripts with a hello that rustls always refuses (without signature algorithms, or with unknown
  # suites only); lengths and tls13-lengths, which expect a response as long as the request; and
  # tls13-large-number-of-extensions, with random extensions that may or may not be valid.
  OPTIONS = { plain: [], dhe: %w[-d], gcm: %w[-C TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256] }.freeze
  SCRIPTS = {
    plain: %w[
      tls13-0rtt-garbage tls13-ccs tls13-connection-abort tls13-conversation tls13-crfg-curves tls13-ecdhe-curves tls13-empty-alert
      tls13-finished tls13-finished-plaintext tls13-hrr tls13-invalid-ciphers tls13-keyshare-omitted tls13-keyupdate
      tls13-legacy-version tls13-multiple-ccs-messages tls13-no-unknown-groups tls13-nociphers tls13-obsolete-curves
      tls13-pkcs-signature tls13-record-layer-limits tls13-record-padding tls13-session-resumption tls13-shuffled-extentions
      tls13-signature-algorithms tls13-symetric-ciphers tls13-unencrypted-alert tls13-unrecognised-groups
      tls13-version-negotiation tls13-zero-content-type tls13-zero-length-data
      clienthello-md5 extensions invalid-cipher-suites invalid-client-hello invalid-session-id invalid-version sig-algs
      signature-algorithms x25519
    ],
    dhe: %w[
      alpn-negotiation client-compatibility downgrade-protection extended-master-secret-extension invalid-server-name-extension
      large-hello legacy-renegotiation message-skipping sslv2hello-protocol
    ],
    gcm: %w[
      aes-gcm-nonces ccs connection-abort conversation cve-2016-6309 early-application-data fuzzed-ciphertext
      hello-request-by-client interleaved-CKE-with-CCS invalid-client-hello-w-record-overflow invalid-compression-methods
      invalid-content-type record-layer-fragmentation renegotiation-disabled truncating-of-client-hello version-numbers
      zero-length-data
    ]
  }.freeze

  # Only Fairlead fails these: it closes a connection without an alert if the first bytes are not a handshake record, such as
  # a ClientHello of SSL 2.0. These bytes never reach rustls.
  ONLY_OURS_FAILS = { "tls13-version-negotiation" => /\ASSL 2\.0 ClientHello/ }.freeze

  # Only bare rustls fails these: another record within a ClientHello ends the connection, and only Fairlead sends an alert.
  ONLY_BARE_FAILS = { "tls13-zero-length-data" => /interleaved in handshake\z/ }.freeze

  # Seeds the random choice of conversations, so that both servers get the same ones.
  PROGRAM = <<~PYTHON
    import random, runpy, sys
    random.seed(7)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
  PYTHON

  APP = 'run ->(_env) { [200, { "content-type" => "text/plain" }, ["hello"]] }'
  SECONDS = 100

  # Result of a script: the number of conversations, and the names of the failed ones.
  Outcome = Struct.new(:total, :failed)

  def initialize(python, checkout, bare_server, names)
    @python = python
    @checkout = checkout
    @bare_server = bare_server
    @scripts = SCRIPTS.flat_map { |kind, all| all.map { |name| [name, OPTIONS.fetch(kind)] } }
    @scripts.select! { |name, _| names.include?(name) } unless names.empty?
    @conversations = 0
    abort "unknown scripts; see SCRIPTS in this file" if @scripts.empty?
  end

  # Returns true if both servers behaved alike everywhere.
  def run
    with_servers do |ports|
      same = @scripts.map { |name, options| compare(name, ports.map { |port| Thread.new { outcome(name, options, port) } }.map(&:value)) }
      puts "", "#{@conversations} conversations", "#{same.count(true)} passed, #{same.count(false)} failed"
      same.all?
    end
  end

  private

  def with_servers
    server = Fairlead::Test::ServerProcess.new(APP, files: pair, bind: "ssl://127.0.0.1:0?cert=cert.pem&key=key.pem")
    File.chmod(0o600, server.path("key.pem"))
    bare = IO.popen([@bare_server, server.path("cert.pem"), server.path("key.pem")])
    bare.wait_readable(10) or abort "the bare server does not start"
    yield [server.start.port, Integer(bare.gets, 10)]
  ensure
    Process.kill(:KILL, bare.pid) if bare
    bare&.close
    server&.destroy
  end

  # An RSA key, because most scripts require one.
  def pair
    key = OpenSSL::PKey::RSA.new(2048)
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = 1
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
    certificate.public_key = key
    certificate.not_before = Time.now - 3600
    certificate.not_after = Time.now + (24 * 3600)
    factory = OpenSSL::X509::ExtensionFactory.new
    certificate.add_extension(factory.create_extension("subjectAltName", "DNS:localhost,DNS:localhost4"))
    { "cert.pem" => certificate.sign(key, "SHA256").to_pem, "key.pem" => key.to_pem }
  end

  def outcome(name, options, port)
    environment = { "PYTHONPATH" => @checkout, "PYTHONHASHSEED" => "0" }
    command = ["timeout", SECONDS.to_s, @python, "-c", PROGRAM, "scripts/test-#{name}.py", "-h", "127.0.0.1", "-p", port.to_s]
    output, = Open3.capture2e(environment, *command, *options, chdir: @checkout)
    total = output[/^TOTAL: (\d+)$/, 1] or return Outcome.new(0, [output.lines.last.to_s.strip])
    failed = output[/^FAILED:\n(.*)\z/m, 1].to_s.scan(/^\t(.*)$/).flatten
    Outcome.new(Integer(total, 10), failed.sort)
  end

  def compare(name, outcomes)
    ours, bare = outcomes
    different = { "only ours fails" => unexplained(ours.failed - bare.failed, ONLY_OURS_FAILS[name]),
                  "only bare rustls fails" => unexplained(bare.failed - ours.failed, ONLY_BARE_FAILS[name]) }
    same = ours.total.positive? && ours.total == bare.total && different.values.all?(&:empty?)
    passed = outcomes.map { |outcome| outcome.total - outcome.failed.size }
    @conversations += ours.total
    puts format("%-9s %-45s %4d of %4d, bare rustls %4d", same ? "same" : "DIFFERENT", name, passed.first, ours.total, passed.last)
    different.each { |words, names| names.each { |one| puts "          #{words}: #{one}" } }
    same
  end

  def unexplained(names, explained) = names.reject { |one| explained&.match?(one.delete("'")) }
end

$stdout.sync = true
python, checkout, bare_server, *names = ARGV
abort "usage: tlsfuzzer.rb PYTHON TLSFUZZER BARE_SERVER [NAME…]" unless bare_server
exit TlsfuzzerComparison.new(python, File.expand_path(checkout), bare_server, names).run
