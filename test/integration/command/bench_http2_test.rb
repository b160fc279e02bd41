# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "socket"
require "tmpdir"

# `fairlead bench --http2`: invalid arguments, and a server of another project.
class BenchHttp2Test < Minitest::Test
  include Fairlead::Test::Waiting

  NGINX = %w[/usr/sbin/nginx /usr/local/sbin/nginx].find { |path| File.executable?(path) }

  def test_options_that_do_not_go_together_are_named
    {
      %w[--streams 2] => "--streams needs --http2",
      %w[--http2 --pipeline 2] => "'--http2' cannot be used with '--pipeline <N>'",
      %w[--http2 --no-keep-alive] => "'--http2' cannot be used with '--no-keep-alive'",
      %w[--http2 --streams 9x2 -c 2] => "--connections does not go with it",
      %w[--http2 --streams 0] => "\"0\" is not a whole number from 1 to 10000",
      ["--http2", "-H", "connection: close"] => "--header: connection is forbidden in HTTP/2"
    }.each do |options, words|
      _, errors, status = bench("http://127.0.0.1:1/", *options)

      assert_equal [1, 1], [status.exitstatus, errors.lines.size], errors
      assert_includes errors, words
    end
  end

  def test_a_server_that_speaks_http_1_only_is_an_error_in_words
    TCPServer.open("127.0.0.1", 0) do |server|
      answering = Thread.new { answer_in_http1(server.accept) }
      _, errors, status = bench("http://127.0.0.1:#{server.local_address.ip_port}/", "--http2", "-c", "1")
      answering.join

      assert_equal 1, status.exitstatus
      assert_match(%r{\Afairlead bench: cannot connect to \S+: the server responds in HTTP/1\.1}, errors)
    end
  end

  def test_nginx_serves_every_stream
    skip "nginx is not installed" unless NGINX
    with_nginx do |url|
      output, errors, status = bench(url, "--http2", "--streams", "8,1x2", "-n", "300", "--json")
      report = JSON.parse(output)

      assert_predicate status, :success?, errors
      assert_equal 300, report["requests"]["answered"]
      assert_equal [8, 1, 1], report["connections"].map { |connection| connection["streams"].size }
      assert_equal 128, report["http2"]["max_concurrent_streams"]
    end
  end

  private

  def bench(*arguments) = Open3.capture3(RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/fairlead", "bench", *arguments)

  # Takes the preface's first lines for a request, like an HTTP/1.1 server.
  def answer_in_http1(client)
    client.gets("\r\n\r\n")
    client.write("HTTP/1.1 505 HTTP Version Not Supported\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    client.close_write
    client.read
  ensure
    client.close
  end

  # Yields the URL of an nginx that speaks HTTP/2 with prior knowledge.
  def with_nginx
    Dir.mktmpdir do |directory|
      socket = File.join(directory, "nginx.sock")
      File.write(File.join(directory, "nginx.conf"), configuration(socket))
      process = Process.spawn(NGINX, "-p", directory, "-e", "stderr", "-c", File.join(directory, "nginx.conf"), err: File::NULL)
      wait_until("nginx to listen") { File.socket?(socket) }
      yield "unix://#{socket}"
    ensure
      end_process(process)
    end
  end

  def end_process(process)
    return unless process

    Process.kill(:TERM, process)
    Process.wait(process)
  end

  def configuration(socket)
    <<~CONF
      #{"user root root;" if Process.uid.zero?}
      daemon off;
      worker_processes 1;
      pid nginx.pid;
      events { worker_connections 64; }
      http {
        access_log off;
        #{%w[client_body proxy fastcgi uwsgi scgi].map { |kind| "#{kind}_temp_path #{kind};" }.join(" ")}
        server { listen unix:#{socket} http2; location / { return 200 "ready"; } }
      }
    CONF
  end
end
