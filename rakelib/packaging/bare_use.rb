# frozen_string_literal: true

# Installs gems of this machine's platform on a system that has Ruby and Rack and no compiler, and uses them: requests, files, a
# WebSocket, TLS, `fairlead bench`. bin/support/bare-root runs it; the arguments are the paths of the gems. Prints a line for each
# result, then "N passed, M failed".

require "digest"
require "fileutils"
require "net/http"
require "openssl"
require "rubygems/package"
require "socket"
require "tmpdir"

# One server with the installed gem.
class BareUse
  APP = <<~RUBY
    echo = Object.new
    def echo.on_message(client, message) = client.write(message.upcase)
    run lambda { |env|
      env["rack.upgrade?"] == :websocket ? (env["rack.upgrade"] = echo) && [200, {}, []] : [200, {}, ["from Ruby \#{RUBY_VERSION}"]]
    }
  RUBY
  COMPILERS = %w[cargo rustc cc gcc clang make].freeze
  # Under emulation, on a busy machine, Ruby takes long to start.
  PATIENCE = 300

  def initialize(gems, folder)
    # Each RubyGems takes one of the server's gems.
    @gems = gems.select { |gem| Gem::Package.new(gem).spec.required_rubygems_version.satisfied_by?(Gem.rubygems_version) }
    @folder = folder
    @environment = { "GEM_HOME" => path("home"), "PATH" => "#{path("home/bin")}:#{ENV.fetch("PATH")}" }
    @passed = @failed = 0
  end

  def run
    check("no compiler") { COMPILERS.select { |name| system("which", name, out: File::NULL) } }
    check("installation") { install }
    prepare
    serving { |plain, secure| use(plain, secure) }
    puts "#{@passed} passed, #{@failed} failed"
    @failed.zero?
  end

  private

  def path(name) = File.join(@folder, name)

  # The block returns the problems.
  def check(title)
    problems = Array(yield).flatten
    problems.empty? ? @passed += 1 : @failed += 1
    puts "#{title}: #{problems.empty? ? "ok" : "FAILED: #{problems.join("; ")}"}"
  rescue StandardError => e
    @failed += 1
    puts "#{title}: FAILED: #{e.class}: #{e.message}"
  end

  def install
    began = now
    return "gem install failed" unless system(@environment, "gem", "install", "--local", "--no-document", "--quiet", *@gems, out: File::NULL)

    files = Dir.glob(path("home/**/*")).select { |file| File.file?(file) }
    puts format("  %.1f s, %.1f MB installed, gems of %.1f MB", now - began, megabytes(files), megabytes(@gems))
    []
  end

  def megabytes(files) = files.sum { |file| File.size(file) } / 1e6

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def prepare
    FileUtils.mkdir_p(path("public"))
    File.write(path("public/file.txt"), "a file\n" * 1000)
    File.write(path("config.ru"), APP)
    key = OpenSSL::PKey::EC.generate("prime256v1")
    File.write(path("key.pem"), key.to_pem)
    File.write(path("cert.pem"), certificate(key).to_pem)
  end

  def certificate(key)
    name = OpenSSL::X509::Name.parse("/CN=localhost")
    OpenSSL::X509::Certificate.new.tap do |made|
      made.version = 2
      made.serial = 1
      made.subject = made.issuer = name
      made.public_key = key
      made.not_before = Time.now - 60
      made.not_after = Time.now + 3600
      extensions = OpenSSL::X509::ExtensionFactory.new(made, made)
      made.add_extension(extensions.create_extension("subjectAltName", "DNS:localhost,IP:127.0.0.1"))
      made.sign(key, OpenSSL::Digest.new("SHA256"))
    end
  end

  def serving
    command = ["fairlead", "-w", "2", "--public-dir", "public", "-b", "tcp://127.0.0.1:0", "-b", "ssl://127.0.0.1:0?cert=cert.pem&key=key.pem"]
    pid = Process.spawn(@environment, *command, chdir: @folder, %i[out err] => path("log"))
    urls = listening
    check("start") { "no addresses in the log:\n#{log}" unless urls.size == 2 }
    yield urls.find { |url| url.scheme == "http" }, urls.find { |url| url.scheme == "https" } if urls.size == 2
  ensure
    Process.kill(:TERM, pid)
    check("end") { "#{$CHILD_STATUS}\n#{log}" unless Process.wait2(pid).last.success? }
  end

  def log = File.read(path("log"))

  def listening
    deadline = now + PATIENCE
    loop do
      urls = log.scan(/listening on (https?:\S+)/).flatten
      return urls.map { |url| URI(url) } if urls.size == 2 || now > deadline

      sleep 0.05
    end
  end

  def use(plain, secure)
    check("HTTP") { expect("from Ruby #{RUBY_VERSION}", Net::HTTP.get(plain)) }
    check("a file") { expect(File.read(path("public/file.txt")), Net::HTTP.get(URI.join(plain, "/file.txt"))) }
    check("TLS") { expect("from Ruby #{RUBY_VERSION}", over_tls(secure)) }
    check("WebSocket") { expect("HELLO", echo(plain, "hello")) }
    check("fairlead bench") { measured(plain) }
  end

  def expect(wanted, found) = ("#{found[0, 200].inspect} instead of #{wanted[0, 200].inspect}" unless wanted == found)

  def over_tls(url)
    Net::HTTP.start(url.hostname, url.port, use_ssl: true, ca_file: path("cert.pem")) { |http| http.get("/").body }
  end

  # One short message with a mask of zeros, and the response.
  def echo(url, text)
    socket = TCPSocket.new(url.hostname, url.port)
    socket.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n" \
                 "sec-websocket-key: #{["a" * 16].pack("m0")}\r\n\r\n")
    status = socket.gets
    return status unless status.include?("101")

    nil until socket.gets == "\r\n"
    socket.write([0x81, 0x80 | text.bytesize, 0].pack("CCN"), text)
    _, size = socket.read(2).unpack("CC")
    socket.read(size)
  ensure
    socket&.close
  end

  def measured(url)
    output = IO.popen([@environment, "fairlead", "bench", "-n", "100", "-c", "4", url.to_s, { err: %i[child out] }], &:read)
    output unless $CHILD_STATUS.success? && output.match?(/\b100\b/)
  end
end

require "English"
exit Dir.mktmpdir { |folder| BareUse.new(ARGV.map { |gem| File.expand_path(gem) }, folder).run }
