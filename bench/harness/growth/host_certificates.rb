# frozen_string_literal: true

module Bench
  module Growth
    # A server with n certificates, each for a host: the cost of a handshake for one of the hosts, of the start, of a second without
    # handshakes, in which the files may be looked at, and of a reload of all files.
    class HostCertificates
      HANDSHAKES = 300
      # Seconds without handshakes: several intervals of `watch_certificates`.
      IDLE = 11
      # Seconds until a reload is over at the latest.
      RELOADING = 120

      def figures(target, count)
        pairs = Certificates.of_hosts(count)
        arguments = configure(target.running, pairs)
        started = now
        target.running.with_another(arguments: arguments) do |running|
          seconds = now - started
          start = running.group.cpu_seconds * 1e6
          cost = Cost.new(running.group)
          handshake = cost.each(HANDSHAKES) { HANDSHAKES.times { |index| shake(running.port, Certificates.host(index * 7919 % count)) } }
          { "handshake for one of n hosts, µs" => handshake, "start, s" => seconds, "CPU of the start, µs" => start,
            "memory, MiB" => running.group.memory_kib / 1024.0, "CPU of an idle second, µs" => idle(running), **reload(running) }
        end
      end

      private

      # Returns arguments of the server's command line, or writes a file that it reads anyway.
      def configure(running, pairs)
        site = running.site
        return nginx(site, pairs) if running.server.name == "nginx"

        lines = pairs.map { |pair| "certificate #{pair.certificate.inspect}, #{pair.key.inspect}\n" }
        ["-C", site.write("certificates.rb", lines.join)]
      end

      def nginx(site, pairs)
        servers = pairs.each_with_index.map do |pair, index|
          "server { listen 127.0.0.1:PORT ssl; server_name #{Certificates.host(index)}; ssl_certificate #{pair.certificate}; " \
            "ssl_certificate_key #{pair.key}; ssl_session_cache shared:TLS:10m; }"
        end
        site.write("nginx-http.conf", "server_names_hash_max_size 65536;\n#{servers.join("\n")}")
        []
      end

      def idle(running)
        before = running.group.cpu_seconds
        sleep IDLE
        (running.group.cpu_seconds - before) * 1e6 / IDLE
      end

      # HUP reads all files again. Fairlead says when it has, and nginx has other workers then.
      def reload(running)
        state = running.server.name == "nginx" ? -> { running.group.workers } : -> { File.read(running.site.log).scan("certificates").size }
        began = now
        cpu = running.group.cpu_seconds
        former = state.call
        running.signal(:HUP)
        sleep 0.01 until state.call != former || now - began > RELOADING
        seconds = now - began
        raise Error, "a reload took too long" if seconds > RELOADING

        Cost.new(running.group)
        { "reload, s" => seconds, "CPU of a reload, µs" => (running.group.cpu_seconds - cpu) * 1e6 }
      end

      # A full handshake; the certificate has to be the one of the host.
      def shake(port, host)
        socket = TCPSocket.new("127.0.0.1", port)
        stream = OpenSSL::SSL::SSLSocket.new(socket, context)
        stream.hostname = host
        stream.connect
        found = stream.peer_cert.subject.to_s
        raise Error, "a certificate of #{found} for #{host}" unless found == "/CN=#{host}"
      ensure
        socket&.close
      end

      def context = @context ||= OpenSSL::SSL::SSLContext.new.tap { |context| context.verify_mode = OpenSSL::SSL::VERIFY_NONE }

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
