# frozen_string_literal: true

require "etc"
require_relative "options/option"

module Fairlead
  # The table of all options. Flags, the methods of the configuration file, environment variables, validation, --help, --check,
  # docs/guides/configuration.md and the settings of the engine are derived from it. No default is written anywhere else.
  # options/option.rb describes the attributes of an entry. The file is long because a single table is easier to search.
  module Options
    extend Enumerable

    autoload :Processors, "fairlead/options/processors"

    @entries = {}

    class << self
      def each(&block) = @entries.each_value(&block)

      # The entry of that name or alias, or nil.
      def [](name)
        @entries[name] || find { |entry| entry.aliases.include?(name) }
      end

      def fetch(name) = self[name] || raise(KeyError, "there is no option #{name.inspect}")

      # The entries that have a value.
      def settings = grep(Option)

      # The headings, in order.
      def groups = map(&:group).uniq

      private

      # Opens a heading.
      def group(title)
        @group = title
      end

      def option(name, type, **attributes)
        add Option.new(name, type, group: @group, **attributes)
      end

      def shorthand(name, **attributes, &block)
        add Shorthand.new(name, group: @group, **attributes, &block)
      end

      def add(entry)
        @entries[entry.name] = entry
      end

      # Dir.tmpdir would find the folder too, but loads FileUtils. It does not matter who may remove files from the folder: the
      # server's files lose their names at once.
      def folder_for_temporary_files(directory)
        given = ENV.fetch("TMPDIR", "")
        folders = [*(SystemText.absolute(given, directory) unless given.empty?), Etc.systmpdir]
        folders.find { |path| File.directory?(path) && File.writable?(path) } || directory
      end
    end

    group "Listening"

    option :bind, Types::Address.new("URI"),
           scope: :process, embedded: true, repeatable: true, short: "-b",
           default: ->(_) { [Binding.default_address] }, shown_default: "tcp://[::]:9292 (tcp://0.0.0.0:9292 without IPv6)",
           valid: ["tcp://127.0.0.1:3000"], invalid: ["gopher://127.0.0.1"],
           doc: "Listens on this address; may be given several times. `tcp://HOST:PORT`, where HOST may be `localhost` (every " \
                "loopback address), `[::]` (IPv6 and IPv4) or `*` (every interface), and port 0 means any free port; " \
                "`unix:///PATH`, with `umask=0111` or `mode=0660` in the query; `unix://@NAME` for an abstract socket on Linux; " \
                "`ssl://HOST:PORT?cert=PATH&key=PATH` for TLS (docs/guides/tls.md has all that may be in its query). " \
                "`backlog=N` in the query overrides `backlog`, and `proxy_protocol=v1`, `v2`, `any` or `none` says with what connections " \
                "begin ([proxies.md](proxies.md))."

    shorthand :ssl_bind,
              long_flags: [], valid: ["0.0.0.0", 9292, { cert: "a.pem", key: "a.key" }], invalid: ["0.0.0.0", 9292, { keystore: "a.jks" }],
              example: 'ssl_bind "0.0.0.0", 9292, cert: "a.pem", key: "a.key"',
              doc: "Adds an `ssl://` address to `bind`: its host, its port, and what would stand in the query. `cert_pem` and `key_pem` take " \
                   "the texts, or objects of Ruby's OpenSSL." do |host, port = nil, options = {}|
      host.nil? ? {} : { bind: Types::SslAddress.new.parse([host, port, options]) }
    end

    option :certificate, Types::CertificateFiles.new("CERT,KEY"),
           scope: :process, embedded: true, repeatable: true, default: [], valid: ["a.pem,a.key"], invalid: ["a.pem"],
           example: 'certificate "a.pem", "a.key"',
           doc: "A certificate of every `ssl://` address, after the certificates that the address names itself; may be given several times. A " \
                "client gets the first one for the host that it asks for, and otherwise the first one. A third path names an OCSP " \
                "response."

    option :watch_certificates, Types::Seconds.new(zero: true),
           scope: :process, embedded: true, default: 5, valid: [60], invalid: [-1],
           doc: "Interval at which the files of certificates, keys, authorities and revocation lists are checked. Changed files are " \
                "read again, as by `fairlead ctl reload-certificates` and the signal HUP. 0 means never. With thousands of files it is longer, up " \
                "to a minute, so that the checks take at most 1 % of a processor."

    option :tls_ticket_keys, Types::Path.new("PATH"),
           scope: :process, embedded: true, repeatable: true, default: [], valid: ["tickets.key"], invalid: [""],
           doc: "A file with the key of session tickets, 48 or 80 random bytes, for machines on which clients are to resume their TLS sessions " \
                "on each of them; may be given several times. The first key encrypts, the others only decrypt. Without it, the " \
                "processes of a server share keys that they replace every six hours."

    shorthand :port,
              placeholder: "PORT", short: "-p", variables: %w[PORT], valid: ["3000"], invalid: ["http"],
              doc: "Listens on this TCP port, on every interface. `port 3000, \"127.0.0.1\"` in the configuration file sets the " \
                   "host too; without it, `rails server` and `rackup` choose the host, in development `localhost`." do |port, host = nil|
      port.nil? ? {} : { bind: Binding.address_for_port(Types::Count.new(0..65_535).parse(port), host) }
    end

    option :bind_to_activated_sockets, Types::Activation.new,
           scope: :process, default: :none, valid: ["only"], invalid: ["some"],
           doc: "Listens on every socket that systemd has opened for the server, also on those at no address of `bind`; with " \
                "`only`, if there are any, on nothing else."

    option :backlog, Types::Limit.new(0..Backlog::MOST),
           scope: :process, embedded: true, default: 0, valid: [512], invalid: [-1],
           doc: "The most connections that wait in the kernel to be accepted. 0 means as many as the system allows (on Linux " \
                "`net.core.somaxconn`, up to 65,535). A greater number than the system allows has no effect, and a log line says so."

    option :max_connections, Types::Count.new(0..10_000_000),
           scope: :engine, default: 0, valid: [2000], invalid: [-1],
           doc: "The maximum number of open connections of a process; if no worker has a place for one more, it gets a 503. A worker " \
                "exceeds it by one for each address if connections arrive while it takes its last one, and another worker has a place. " \
                "Connections in the waiting room " \
                "count too. Requests of HTTP/2 and TLS wait there without their connections; while any do, one place per thread stays free. " \
                "0 means three quarters of the descriptors that the server may use: the " \
                "open-file limit, which is raised to the hard limit at the start, minus the files open then, minus a quarter of it (at " \
                "most 1,024) for the application. With any value, an eighth of them is kept for files."

    group "Certificates"

    option :acme, Types::AcmeOrder.new,
           scope: :process, repeatable: true, default: [],
           valid: ["shop.example?contact=admin@shop.example&terms_of_service_agreed=true"], invalid: ["shop.example"],
           example: 'acme "shop.example", contact: "admin@shop.example", terms_of_service_agreed: true',
           doc: "Gets a certificate for these hosts from an authority that speaks ACME, such as Let's Encrypt, and renews it in time; may " \
                "be given several times. `terms_of_service_agreed`, which must be true, says that you agree to what the authority " \
                "demands. Also `contact` (the address that it writes to), `directory` (its own address), `challenge` (`http-01` or " \
                "`tls-alpn-01`), `eab_kid` and " \
                "`eab_hmac` (an external account), and `ca` (a file with the certificate behind the authority's own). On the command line " \
                "`--acme \"shop.example,www.shop.example?terms_of_service_agreed=true\"`. See docs/guides/acme.md."

    option :acme_dir, Types::Path.new("DIR"),
           scope: :process, needs: :acme, default: ->(_) { StateFolder.default("acme") },
           shown_default: "`acme` in `$STATE_DIRECTORY`, or else in `~/.local/state/fairlead`", valid: ["/var/lib/shop/acme"], invalid: [""],
           doc: "The folder for accounts, keys and certificates of `acme`. It is made if need be, for its owner only. It must outlive a " \
                "deployment, and belong to one machine."

    group "Processes and threads"

    option :workers, Types::Workers.new(0..64),
           scope: :process, default: 0, short: "-w", variables: %w[WEB_CONCURRENCY], valid: ["auto"], invalid: ["many"],
           doc: "The number of worker processes; with 0 a single process serves. `auto` means one for each processor that the " \
                "process may use; the processor quota of a container counts."

    shorthand :threads,
              placeholder: "MIN:MAX", short: "-t", valid: ["1:5"], invalid: ["few"],
              doc: "Sets `min_threads` and `max_threads`; a single number sets both. `threads 1, 5` in the configuration file." do |min, max = nil|
      if max.nil? && min.is_a?(String)
        raise Types::Invalid, "must be a number, or MIN:MAX such as 1:5, not #{min.inspect}" unless min.match?(/\A *(?:\d+|\d* *: *\d+) *\z/)

        min, max = min.split(":", 2).map { |number| number.strip.empty? ? 0 : number }
      end
      { min_threads: min, max_threads: max || min }
    end

    option :min_threads, Types::Count.new(0..500),
           scope: :engine, default: 0, variables: %w[FAIRLEAD_MIN_THREADS PUMA_MIN_THREADS RAILS_MIN_THREADS MIN_THREADS],
           valid: [1], invalid: ["none"],
           doc: "The number of Ruby threads a process starts with. More start when they are needed."

    option :max_threads, Types::Count.new(1..500),
           scope: :engine, default: 5, variables: %w[FAIRLEAD_MAX_THREADS PUMA_MAX_THREADS RAILS_MAX_THREADS MAX_THREADS],
           valid: [16], invalid: [0],
           doc: "The maximum number of requests that a process runs in the application at the same time."

    option :time_slice, Types::TimeSlice.new,
           scope: :engine, default: 0.005, valid: [0.02], invalid: [2],
           doc: "The longest time for which a thread computes while other threads of the process wait for Ruby's lock, in seconds, at least 0.001. " \
                "Then the one that has waited longest is next. 0 leaves it to Ruby, which switches threads " \
                "after 0.1 seconds. See docs/guides/time_slices.md."

    option :preload, Types::Flag.new,
           scope: :process, aliases: %i[preload_app!],
           default: ->(values) { values[:workers] > 1 && !values[:prune_bundler] }, shown_default: "true with more than one worker",
           valid: [false], invalid: ["maybe"],
           doc: "Loads the application before the workers are forked, so that they share its memory. In " \
                "`before_worker_boot`, reopen the connections and restart the threads of the loaded application."

    option :warm_up, Types::WarmUp.new,
           scope: :process, repeatable: true, default: [[:auto].freeze].freeze,
           valid: ["/posts?page=1"], invalid: ["posts"],
           doc: "Requests that the application gets before the workers are forked, so that these share what the requests load and cache; may be " \
                "given several times. Paths, URLs, or a block. `auto` is the health check of Rails, with `preload` and outside development. " \
                "`none` turns it off. See docs/guides/boot.md."

    option :warm_up_timeout, Types::Seconds.new,
           scope: :process, default: 10, valid: [30], invalid: [0],
           doc: "The longest time for all of `warm_up`. The server then starts without the rest."

    option :prune_bundler, Types::Flag.new,
           scope: :process, default: false, valid: [true], invalid: ["maybe"],
           doc: "Does not preload the application, unless `preload` says so. In Puma it makes restarts load other gems; those of " \
                "Fairlead always do."

    option :refork_after, Types::Requests.new(0..1_000_000_000, implied: 1000),
           scope: :process, short: "-f", aliases: %i[fork_worker], long_flags: %w[refork-after fork-worker],
           default: ->(values) { values[:preload] && values[:environment] != "development" ? 1000.div(values[:workers].clamp(2, 5)) : 0 },
           shown_default: "1,000 divided by the number of workers, from 200 to 500, with `preload`; 0 without it and in development",
           valid: [5000], invalid: ["soon"],
           doc: "Once a worker has served so many requests, it becomes the process that the other workers are forked from, so that they " \
                "share the memory of what it has loaded and cached. 0 means never. See [fork_safety.md](fork_safety.md#refork)."

    option :silence_fork_callback_warning, Types::Flag.new,
           scope: :process, default: false, long_flags: [], valid: [true], invalid: ["maybe"],
           doc: "Gives no warning of hooks that never run because there are no workers."

    option :fair_by, Types::FlowKey.new("WHOM"),
           scope: :engine, default: "connection", valid: ["x-api-key"], invalid: ["x api key"],
           doc: "The clients between which the time of the threads is divided while requests wait. `connection`: requests run in the order in " \
                "which they arrived. `ip`: those who have used least are next, by the address of the client (as in `REMOTE_ADDR`; 64 bits " \
                "of IPv6), so that a burst of one delays itself only. The name of a field: the same by its value, and by " \
                "address for requests without it. See docs/guides/fair_by.md."

    option :priority_paths, Types::Paths.new("LIST"),
           scope: :engine, default: [], valid: ["/up"], invalid: ["up", "/up?full"],
           doc: "Requests for exactly these paths go ahead of all that wait, such as the health checks of a load balancer: one of them " \
                "at a time, and every second turn at most. A list (`%w[/up /ping]` too). See docs/guides/fair_by.md."

    option :request_timeout, Types::Seconds.new(zero: true),
           scope: :engine, default: 0, valid: [30], invalid: [-1],
           doc: "The longest time in which the application may begin its response. After that the client gets a 504 and the log the backtrace, " \
                "while the application goes on; its late response is discarded. The env has the time as `fairlead.deadline`, and " \
                "`fairlead.request_timeout` sets another one. 0 means no limit. See docs/guides/overload.md."

    option :request_timeout_for, Types::TimeoutRule.new("RULE"),
           scope: :engine, repeatable: true, default: [], valid: ["/reports/*: 300"], invalid: ["/reports/*", "reports: 5"],
           doc: "The `request_timeout` of requests for a path, as `PATH: SECONDS`; `*` at the end of the path stands for any rest, and 0 seconds " \
                "for no limit. The first match counts; may be given several times."

    option :stuck_after, Types::Seconds.new(zero: true),
           scope: :engine, default: 60, valid: [10], invalid: [-1],
           doc: "The time after its 504 from which on a request that still runs counts as stuck. The worker is then replaced while the others " \
                "serve. 0 means never."

    option :queue_timeout, Types::Seconds.new(zero: true),
           scope: :engine, default: 30, valid: [5], invalid: [-1],
           doc: "The longest time that a request waits for a thread. After that it gets a 503 with `retry-after`, and the application is " \
                "not called. Not for `priority_paths`. 0 means no limit. See docs/guides/overload.md."

    option :queue_target, Types::Seconds.new(zero: true),
           scope: :engine, default: 0, valid: [0.5], invalid: [-1],
           doc: "The time that requests may wait for a thread while the server keeps up. If every request of a `queue_interval` waits longer, " \
                "in all workers, requests that have waited for twice this time get a 503, so that the others are served in time. 0 turns this off. " \
                "See docs/guides/overload.md."

    option :queue_interval, Types::Seconds.new,
           scope: :engine, needs: :queue_target, default: 0.1, valid: [0.5], invalid: [0],
           doc: "The interval of `queue_target`: a burst that is served within it is no overload."

    option :queue_limit, Types::Limit.new(0..1_000_000_000),
           scope: :engine, default: 0, valid: [200], invalid: [-1],
           doc: "The most requests and WebSocket messages that wait for a thread of a worker, or in the waiting room. One more request gets a " \
                "503 at once; with `fair_by`, the client with most waiting requests gets it for its last one, and the waiting room does not " \
                "count. 0 means no limit. See docs/guides/overload.md."

    option :waiting_room, Types::Flag.new,
           scope: :engine, embedded: false, default: true, valid: [false], invalid: ["maybe"],
           doc: "Moves a request that waits in a busy worker to one with a free thread. Has no effect without workers."

    option :raise_exception_on_sigterm, Types::Flag.new,
           scope: :process, default: false, valid: [true], invalid: ["maybe"],
           doc: "After a TERM, ends as the signal would have ended it (exit status 143), and not with status 0. Everything is finished " \
                "first in either case."

    option :worker_timeout, Types::Seconds.new,
           scope: :process, default: 60, valid: [30], invalid: [0],
           doc: "A worker that shows no sign of life for this time is ended and replaced."

    option :worker_boot_timeout, Types::Seconds.new,
           scope: :process, default: 60, valid: [120], invalid: ["soon"],
           doc: "A worker that is not ready to serve after this time is ended and replaced."

    option :load_timeout, Types::Seconds.new,
           scope: :process, default: 600, valid: [120], invalid: [0],
           doc: "The longest time that code may take to load. After it, a restart fails, and a first start ends."

    option :worker_settle_time, Types::Seconds.new(zero: true),
           scope: :process, default: 1, valid: [10], invalid: [-1],
           doc: "A new worker counts only after it has served for this time, as with `minReadySeconds` of Kubernetes. In a restart it then " \
                "takes the place of an old one; a worker that ends earlier makes the restart fail."

    option :worker_max_memory, Types::Bytes.new(least: 1024**2),
           scope: :process, default: nil, none: "no limit", valid: ["600m"], invalid: ["500k"],
           doc: "The memory of a worker above which it is replaced: its own pages and its share of pages of several processes (PSS). " \
                "A new worker serves before the old one ends, one worker at a time; connections stay open, and WebSockets move. It is measured " \
                "every 5 seconds. Has no effect without workers. See [deployment.md](deployment.md#workers-that-grow)."

    option :worker_max_requests, Types::Count.new(1..1_000_000_000),
           scope: :process, default: nil, none: "no limit", valid: [10_000], invalid: [0],
           doc: "The number of requests after which a worker is replaced, like one above `worker_max_memory`. Requests for files of " \
                "`public_dir` do not count. Has no effect without workers."

    option :worker_max_age, Types::Seconds.new,
           scope: :process, default: nil, none: "no limit", valid: [43_200], invalid: [0],
           doc: "The time after which a worker is replaced, like one above `worker_max_memory`. Has no effect without workers."

    option :worker_max_jitter, Types::Part.new,
           scope: :process, default: 0.1, valid: [0.25], invalid: [1.5],
           doc: "Lowers `worker_max_memory`, `worker_max_requests` and `worker_max_age` by a random part for each worker, up to this one, so that " \
                "workers that have started together are not replaced together."

    option :shutdown_timeout, Types::Seconds.new(zero: true),
           scope: :process, embedded: true, default: 30, aliases: %i[worker_shutdown_timeout], valid: [10], invalid: [-1],
           doc: "The longest time that requests may take to finish when the server is asked to end. In those still running " \
                "`Fairlead::ForcedShutdown` is then raised, and their clients get a 503."

    option :long_drain, Types::Seconds.new(zero: true),
           scope: :process, default: 0, valid: [600], invalid: [-1],
           doc: "The longest time that requests of a worker that is replaced may take to finish, if that is longer than `shutdown_timeout`: " \
                "long uploads, downloads, and WebSockets and event streams over HTTP/2. The other workers are replaced meanwhile. Has no " \
                "effect when the whole server ends. See [deployment.md](deployment.md#long-requests)."

    option :drain_delay, Types::Seconds.new(zero: true),
           scope: :process, default: 0, valid: [10], invalid: [-1],
           doc: "Time for which connections are still accepted when the server is asked to end. It is not ready any more then, and each " \
                "response has `connection: close`. Set it to the time in which a load balancer notices that, so that it sends no " \
                "request to a closed port. `shutdown_timeout` begins afterwards. A second signal (a TERM not within a second) ends the delay."

    option :pause_timeout, Types::Seconds.new(zero: true),
           scope: :process, default: 30, valid: [10], invalid: [-1],
           doc: "The longest time for which a request waits while the server is paused (`fairlead ctl pause`). After it, it gets a 503 with " \
                "the error page. See [control.md](control.md#pausing)."

    option :pause_limit, Types::Seconds.new,
           scope: :process, default: 3600, valid: [600], invalid: [0],
           doc: "The longest pause. It then ends by itself, in case nobody resumes it."

    option :idle_timeout, Types::Seconds.new,
           scope: :process, default: nil, valid: [300], invalid: [0],
           doc: "Ends the server when it has had no request for this time, as is useful with socket activation. Open WebSockets, event " \
                "streams and running requests count as use; connections between two requests do not."

    shorthand :force_shutdown_after,
              placeholder: "SEC", required: 0, valid: [10], invalid: ["soon"],
              doc: "Sets `shutdown_timeout`. `:immediately` means 0. `:forever` changes nothing: so that every deployment comes to an " \
                   "end, requests are never waited for without a limit." do |seconds = nil|
      { shutdown_timeout: { "forever" => nil, "immediately" => 0 }.fetch(seconds.to_s, seconds) }
    end

    option :restart_command, Types::Text.new("CMD"),
           scope: :process, default: nil, short: "-R", aliases: %i[restart_cmd], long_flags: %w[restart-command restart-cmd],
           valid: ["bin/server --quiet"], invalid: [""],
           doc: "The command that starts the new code at a restart. By default it is the one that has started the server, in the same " \
                "folder; a symbolic link to a release is followed anew."

    group "The application"

    option :rackup, Types::Path.new("PATH"),
           scope: :process, default: "config.ru", valid: ["app.ru"], invalid: [""],
           doc: "The rackup file of the application; also the argument of `fairlead`."

    option :environment, Types::Text.new("NAME"),
           scope: :process, embedded: true, default: "development", short: "-e", variables: %w[APP_ENV RACK_ENV RAILS_ENV],
           valid: ["production"], invalid: [""],
           doc: "The environment the application runs in; RACK_ENV is set to it. Only in `development` are the details of errors " \
                "shown to clients."

    option :directory, Types::StartFolder.new("DIR"),
           scope: :process, default: ->(_) { SystemText.current }, shown_default: "the current folder", aliases: %i[worker_directory],
           long_flags: %w[dir directory],
           valid: ["."], invalid: ["/nowhere/at/all"],
           doc: "Changes to this folder before reading or loading anything else."

    option :config, Types::Path.new("PATH"),
           scope: :process, repeatable: true, default: [], short: "-C", in_file: false,
           shown_default: "the first of config/fairlead/ENVIRONMENT.rb, config/fairlead.rb, config/puma/ENVIRONMENT.rb and config/puma.rb",
           none: "the default one", valid: ["config/fairlead.rb"], invalid: [""],
           doc: "Reads this configuration file; `-` (or --no-config) reads none, not even the default one. May be given several " \
                "times; the later file wins. A relative path begins at the current folder, and the default ones at `--dir`. It may be a " \
                "pipe, and has at most 16 MiB."

    option :lowlevel_error_handler, Types::Callable.new,
           scope: :process, embedded: true, default: nil, long_flags: [],
           valid: [->(_error) { [500, {}, []] }], invalid: ["a text"],
           example: 'lowlevel_error_handler { |error, env, status| [status, {}, ["Sorry"]] }',
           doc: "Makes the response when the application has raised an exception and no response has begun. The block is called " \
                "with the exception, the env and the status (500, or 503 when the request was aborted because the server ends), or " \
                "with as many of these as it takes, and returns a Rack response. The exception is logged in any case. If the " \
                "block raises, that is logged too, and the client gets the usual response."

    option :early_hints, Types::Flag.new,
           scope: :engine, default: false, valid: [true], invalid: ["maybe"],
           doc: "Offers `rack.early_hints` to the application, which sends a 103 response."

    option :fiber_per_request, Types::Flag.new,
           scope: :process, embedded: true, default: false, aliases: %i[clean_thread_locals], variables: %w[PUMA_FIBER_PER_REQUEST],
           valid: [true], invalid: ["maybe"],
           doc: "Runs each request in a Fiber of its own, so that what the application keeps in `Thread.current[:name]` is not seen by " \
                "the next request of the thread. A Fiber has a smaller stack than a thread."

    option :puma_env, Types::Flag.new,
           scope: :process, embedded: true, default: false, valid: [true], invalid: ["maybe"],
           doc: "Adds to each env what applications and libraries for Puma ask for. `puma.socket` is a socket object, which is closed " \
                "after the request. `puma.request_body_wait` is how many milliseconds the body was waited for. " \
                "`puma.mark_as_io_bound` may be called and does nothing. `puma.peercert` is the certificate that a client has sent."

    group "Requests"

    option :handshake_timeout, Types::Seconds.new,
           scope: :engine, default: 10, valid: [5], invalid: [0],
           doc: "The longest time that a TLS handshake may take in all, from the moment when the connection was accepted."

    option :max_handshakes, Types::Count.new(1..1_000_000),
           scope: :engine, default: 1024, valid: [100], invalid: [0],
           doc: "Most TLS handshakes of a worker at a time. Above it, one is given up: first handshakes without a complete ClientHello, of the " \
                "address with the most."

    option :http2, Types::Flag.new,
           scope: :engine, default: true, valid: [false], invalid: ["maybe"],
           doc: "Speaks HTTP/2 with clients that want it: over TLS if they agree on it (ALPN), without TLS if they begin with " \
                "it (prior knowledge), as routers do. See `docs/guides/http2.md`."

    option :http2_websockets, Types::Flag.new,
           scope: :engine, default: true, valid: [false], invalid: ["maybe"],
           doc: "Offers WebSockets as streams of HTTP/2 (RFC 8441): browsers open them over the connection that they have; otherwise " \
                "each over a connection of HTTP/1.1."

    option :http2_streams, Types::Count.new(1..10_000),
           scope: :engine, default: 100, valid: [32], invalid: [0],
           doc: "Most requests of an HTTP/2 connection at a time. Those above it are refused before they are read, so that the client " \
                "may send them again."

    option :head_timeout, Types::Seconds.new,
           scope: :engine, default: 30, valid: [5], invalid: [0],
           doc: "The longest time from the first to the last byte of a request's head, even if bytes keep arriving."

    option :head_max_bytes, Types::Bytes.new(least: 1024),
           scope: :engine, default: 64 * 1024, valid: ["128k"], invalid: ["10"],
           doc: "The largest head (request line and header) that is accepted; a larger one gets a 431."

    option :head_max_fields, Types::Count.new(8..128),
           scope: :engine, default: 100, valid: [128], invalid: [0, 129],
           doc: "The maximum number of header fields in a request; more get a 431."

    option :target_max_bytes, Types::Bytes.new(least: 64),
           scope: :engine, default: 16 * 1024, valid: ["8k"], invalid: ["1"],
           doc: "The longest request target (path and query) that is accepted; a longer one gets a 414."

    option :supported_http_methods, Types::Methods.new("LIST"),
           scope: :engine, default: [], none: "any", valid: ["GET,HEAD"], invalid: ["GET HEAD"],
           doc: "The request methods that are served; others get a 501. A list (`%w[GET HEAD]` too), or `any`. `CONNECT`, which only " \
                "a proxy can serve, always gets a 501."

    option :remote_address, Types::RemoteAddress.new("SOURCE"),
           scope: :engine, default: "socket", aliases: %i[set_remote_address], valid: ["header:X-Real-IP"], invalid: ["header"],
           doc: "The source of the client's address, for `REMOTE_ADDR`, the access log and the log of refusals. `socket`: the " \
                "peer, or the client that `trusted_proxies` name. `localhost` or an address: the same for all. `header: \"X-Real-IP\"`: that " \
                "field, if a request has it. With `trusted_proxies` it counts only from those, and the last address that is none of theirs is " \
                "the client; without, the first address counts, which clients can forge unless a proxy sets the field. " \
                "`proxy_protocol: :v1` (`:v2`, `:any`): every connection begins with a header of HAProxy's PROXY protocol, within " \
                "`head_timeout`; one without gets a 400. `?proxy_protocol=` in an address of `bind` says so for one listener. See " \
                "[proxies.md](proxies.md)."

    option :trusted_proxies, Types::Network.new("NETWORK"),
           scope: :engine, repeatable: true, default: [], valid: ["10.0.0.0/8"], invalid: ["10.0.0.0/255.0.0.0"],
           doc: "Proxies that are believed in what they say of their clients. In `x-forwarded-for`, `-proto`, `-host` and `-port` and in " \
                "`forwarded` they say what `REMOTE_ADDR`, `rack.url_scheme`, `SERVER_NAME` and `SERVER_PORT` are. The client is the last " \
                "one in the list that is no such proxy. From others these fields change nothing. An address, a network, or `unix` for all who " \
                "connect to a Unix socket; may be given several times. See [proxies.md](proxies.md)."

    option :forwarded_fields, Types::Choice.new(:all, :x_forwarded, :forwarded),
           scope: :engine, needs: :trusted_proxies, default: :all, valid: ["forwarded"], invalid: ["via"],
           doc: "The fields of `trusted_proxies` that count: `x-forwarded-…`, `forwarded`, or `all` of them. Set the kind that " \
                "your proxies write: with `all`, a request with fields that contradict each other gets a 400."

    option :request_start, Types::Flag.new,
           scope: :engine, default: true, valid: [false], invalid: ["maybe"],
           doc: "Sets `HTTP_X_REQUEST_START` to the time at which the request was complete (with `puma_env`, its head), as `t=SECONDS`. From it " \
                "monitoring tools for applications (APM) tell how long a request has waited; see [deployment.md](deployment.md#monitoring-tools). " \
                "A time in `x-request-start`, `x-queue-start` or `x-middleware-start` from `trusted_proxies` stays. From others these fields " \
                "are left out."

    option :server_timing, Types::ServerTiming.new,
           scope: :engine, default: false, valid: ["trusted"], invalid: ["all"],
           doc: "Adds the field `server-timing` to responses of the application, with the time that the request has waited and the time of the " \
                "application. The developer tools of browsers show it. `trusted`: only for clients with an address in `trusted_proxies`, " \
                "because the times tell others how busy the server is. See [deployment.md](deployment.md#times-in-the-browser)."

    option :rack_url_scheme, Types::Choice.new(:http, :https),
           scope: :engine, default: nil, bare: true, none: "that of the connection", valid: ["https"], invalid: ["ftp"],
           doc: "The `rack.url_scheme` of every request, and with it the usual `SERVER_PORT`, for a server behind a proxy " \
                "that speaks HTTPS."

    option :redirect_to_https, Types::HttpsRedirect.new,
           scope: :engine, default: false, valid: [8443], invalid: [0, "yes"],
           doc: "Redirects a request that has come by `http` to the same place with `https`, without the application: GET and HEAD with 301, " \
                "others with 308. A number is the port there; `true` means the port of the first `ssl://` address, or 443 without one and behind " \
                "`trusted_proxies`. Not for `priority_paths` and the challenges of certificate authorities. See [proxies.md](proxies.md)."

    option :hsts, Types::Hsts.new("RULE"),
           scope: :engine, default: nil, valid: ["max-age=31536000; includeSubDomains"], invalid: ["always", "max-age=60; preload"],
           doc: "Sends `strict-transport-security` in responses by `https` that have no such field, so that browsers use nothing else from " \
                "then on. It takes seconds, `max_age: 31536000, include_subdomains: true, preload: true`, or the value of the field; `true` " \
                "means a year. Begin with a few minutes: it cannot be taken back."

    option :body_timeout, Types::Seconds.new,
           scope: :engine, default: 20, valid: [60], invalid: [0],
           doc: "The longest time for which a request body may make no progress, or be behind `body_min_rate`. After that it gets a 408. The " \
                "same holds for an incomplete message of a WebSocket above 32 KiB, which is closed with 1008."

    shorthand :first_data_timeout,
              placeholder: "SEC", long_flags: [], valid: [15], invalid: [0],
              doc: "Sets `head_timeout` and `body_timeout`: what Puma's option of this name limits." do |seconds|
      { head_timeout: seconds, body_timeout: seconds }
    end

    option :body_min_rate, Types::Bytes.new,
           scope: :engine, default: 500, valid: ["1k"], invalid: [-1],
           doc: "The minimum rate, in bytes a second, at which a request body must arrive; 0 means none. A body that falls behind it by " \
                "`body_timeout` gets a 408, even if it was fast earlier."

    option :body_max_bytes, Types::Bytes.new,
           scope: :engine, default: 1024**3, aliases: %i[http_content_length_limit], valid: ["50m"], invalid: ["huge"],
           doc: "The largest request body that is accepted; a larger one gets a 413. 0 means no limit."

    option :body_memory_bytes, Types::Bytes.new,
           scope: :engine, default: 112 * 1024, valid: ["1m"], invalid: [-1],
           doc: "A request body up to this size is kept in memory; a larger one goes to a temporary file without a name. If " \
                "too many files are open, it is not read until there is a descriptor, for at most `body_timeout`; then " \
                "it gets a 503."

    option :body_disk_total_bytes, Types::Bytes.new,
           scope: :engine, default: 4 * 1024**3, valid: ["20g"], invalid: ["much"],
           doc: "The most disk space that all request bodies of a process take together, though never less than `body_max_bytes`. A " \
                "body that exceeds it gets a 503. 0 means no limit."

    option :request_memory_total_bytes, Types::Bytes.new(least: 1024**2),
           scope: :engine, default: 256 * 1024**2, valid: ["1g"], invalid: ["1k"],
           doc: "The most memory that the heads and bodies of all requests of a process and incomplete messages of WebSockets take " \
                "together, not counting 32 KiB of each. Beyond it, bodies go to temporary files sooner, larger heads get a 503. " \
                "Messages may take half of it. Bodies leave a quarter of it to messages, and a sixteenth to heads. Beyond its half, a " \
                "WebSocket of the address with incomplete messages that have taken most for longest is closed with 1013."

    option :temp_dir, Types::Folder.new("DIR"),
           scope: :engine, default: ->(values) { folder_for_temporary_files(values[:directory]) }, shown_default: "the system's",
           valid: ["."], invalid: ["/nowhere/at/all"],
           doc: "The folder for temporary files."

    group "Responses and connections"

    option :server_header, Types::FieldValue.new("TEXT"),
           scope: :process, embedded: true, default: nil, valid: ["shop/1.0"], invalid: ["shop\r\nset-cookie: a=b"],
           doc: "Sends this in the field `server` of each response of the application that has none. Without it, there is no such " \
                "field."

    option :enable_keep_alives, Types::Flag.new,
           scope: :engine, default: true, valid: [false], invalid: ["maybe"],
           doc: "Lets a connection carry several requests. Without, each response has `connection: close`."

    option :max_keep_alive, Types::Limit.new(0..1_000_000_000),
           scope: :engine, default: 0, aliases: %i[max_fast_inline], valid: [999], invalid: [-1],
           doc: "The maximum number of requests of a connection; the last response has `connection: close`. 0 means no limit. A limit " \
                "helps a balancer to spread connections over new servers; each client takes turns by request in any case."

    option :keep_alive_timeout, Types::Seconds.new,
           scope: :engine, default: 65, aliases: %i[persistent_timeout], variables: %w[PUMA_PERSISTENT_TIMEOUT],
           valid: [15], invalid: [0],
           doc: "The longest time that a connection stays idle between two requests. Set it longer than the timeout of a proxy in front, which " \
                "would otherwise sometimes send a request on a connection that is just being closed."

    option :write_timeout, Types::Seconds.new,
           scope: :engine, default: 30, valid: [10], invalid: [0],
           doc: "The connection of a client that reads nothing of its response for this time, or is this far behind `write_min_rate`, is aborted."

    option :write_min_rate, Types::Bytes.new,
           scope: :engine, default: 500, valid: ["1k"], invalid: [-1],
           doc: "The minimum rate, in bytes a second, at which a client must read its response or its WebSocket messages; 0 means none. " \
                "The connection of one that falls behind it by `write_timeout` is aborted, even if it was fast earlier."

    option :response_memory_bytes, Types::Bytes.new(least: 4096),
           scope: :engine, default: 256 * 1024, valid: ["1m"], invalid: [0],
           doc: "The part of a response that waits for its client in memory; the rest goes to a temporary file."

    option :response_disk_bytes, Types::Bytes.new,
           scope: :engine, default: 1024**3, valid: ["100m"], invalid: [-1],
           doc: "The part of a response that may wait in that temporary file."

    option :response_memory_total_bytes, Types::Bytes.new(least: 1024**2),
           scope: :engine, default: 128 * 1024**2, valid: ["64m"], invalid: ["1k"],
           doc: "The most memory that the unsent responses of a worker take together, with WebSockets and event streams. Beyond it, " \
                "the address that leaves most unread gives way: slow readers with large shares are aborted. Threads " \
                "that write responses wait in line; if requests wait for these threads, the connection of the slowest reader is aborted."

    option :response_disk_total_bytes, Types::Bytes.new,
           scope: :engine, default: 2 * 1024**3, valid: ["100m"], invalid: [-1],
           doc: "The most disk space that the unsent responses of a worker take together. Beyond it they stay in memory."

    group "Files"

    option :public_dir, Types::Folder.new("DIR"),
           scope: :engine, default: nil, aliases: %i[public], long_flags: %w[public public-dir], foreign_flags: %w[-www],
           valid: ["."], invalid: ["/nowhere/at/all"],
           doc: "Serves the files of this folder before calling the application. Without a rackup file, serves only these files."

    option :public_hidden, Types::Flag.new,
           scope: :engine, needs: :public_dir, default: false, valid: [true], invalid: ["maybe"],
           doc: "Also serves names in `public_dir` that begin with a dot or end with `~`. `/.well-known/` is always served."

    option :public_symlinks, Types::Choice.new(:inside, :none, :all),
           scope: :engine, default: :inside, valid: ["all"], invalid: ["some"],
           doc: "Which symbolic links are followed in `public_dir` and beneath `sendfile_root`: only links that stay `inside`, `none`, or `all`."

    option :public_cache_control, Types::CacheRule.new("RULE"),
           scope: :engine, needs: :public_dir, repeatable: true, default: [], none: "the built-in rules",
           valid: ["/fonts/*: public, max-age=604800"], invalid: ["/fonts/*"],
           doc: "Sets `cache-control` for files with a matching path, as `GLOB: VALUE`; the first match counts. Otherwise names " \
                "with a fingerprint are cached for a year, and other files are revalidated each time."

    option :sendfile_root, Types::SendfileRoot.new("ROOT"),
           scope: :engine, repeatable: true, default: [],
           valid: ["/internal/=."], invalid: ["/nowhere/at/all"],
           doc: "Sends the file that `x-sendfile` names, beneath `DIR`, or `x-accel-redirect`, for `PREFIX=DIR`; may be given " \
                "several times."

    option :error_page, Types::ErrorPage.new("PAGE"),
           scope: :engine, repeatable: true, default: [], none: "a short text, or `503.html` and the like in `public_dir`",
           valid: ["502,503,504=maintenance.html"], invalid: ["503"],
           doc: "Sends a file, as `STATUS[,STATUS]=FILE`, as the body of error responses with these statuses; may be given several times. See " \
                "[files.md](files.md#error-pages)."

    option :file_cache_bytes, Types::Bytes.new,
           scope: :engine, default: 32 * 1024**2, valid: ["128m"], invalid: [-1],
           doc: "Memory in which each process caches small files; 0 means none."

    option :compress, Types::Flag.new,
           scope: :engine, default: false, valid: [true], invalid: ["maybe"],
           doc: "Compresses the responses of the application with brotli, zstd or gzip. Not for pages that contain both a secret and " \
                "text that an attacker can choose (BREACH)."

    option :compress_min_bytes, Types::Bytes.new,
           scope: :engine, needs: :compress, default: 1024, valid: ["4k"], invalid: [-1],
           doc: "Shorter responses are not compressed."

    option :compress_types, Types::MediaType.new("TYPE"),
           scope: :engine, needs: :compress, repeatable: true, default: [], none: "the built-in list",
           valid: ["text/*"], invalid: ["text"],
           doc: "Compresses only responses of this type, such as `application/json` or `text/*`; may be given several times."

    group "Real time"

    option :message_max_bytes, Types::Bytes.new(least: 125),
           scope: :engine, default: 1024**2, valid: ["256k"], invalid: ["1"],
           doc: "The longest message that is accepted from a WebSocket; a longer one closes it with 1009."

    option :client_pending_bytes, Types::Bytes.new(least: 1024),
           scope: :engine, default: 1024**2, valid: ["4m"], invalid: ["none"],
           doc: "The most bytes that wait for a client (a WebSocket or an event stream) that does not read them; `client_overflow` " \
                "says what happens beyond that. It also limits the messages that wait for the client's callbacks: reading from " \
                "the WebSocket then pauses."

    option :client_overflow, Types::Choice.new(:close, :drop),
           scope: :engine, default: :close, valid: ["drop"], invalid: ["grow"],
           doc: "The measure against a client for which too much waits: `close` closes it (a WebSocket with 1013), so that it can " \
                "reconnect; `drop` drops messages to it until it has caught up."

    option :client_pending_messages, Types::Count.new(1..1_000_000),
           scope: :engine, default: 4096, valid: [10_000], invalid: [0],
           doc: "The most published messages that wait for the blocks of a client's subscriptions, within `client_pending_bytes`. " \
                "Beyond that the application does not keep up, and `client_overflow` says what happens."

    option :max_subscriptions, Types::Count.new(0..10_000_000),
           scope: :engine, default: 10_000, valid: [100], invalid: [-1],
           doc: "The maximum number of subscriptions of a client. Beyond it `client.subscribe` returns nil, and a line in the log says " \
                "so. 0 means no limit."

    option :max_subscriptions_total, Types::Count.new(0..100_000_000),
           scope: :engine, default: 1_000_000, valid: [50_000], invalid: [-1],
           doc: "The same for all clients of a process together. Beyond it, an address that has more than twice as many as another one gives " \
                "way to that: its client with most is closed. Subscriptions of the process itself count, but are never refused."

    option :max_patterns, Types::Count.new(0..10_000_000),
           scope: :engine, default: 10_000, valid: [1000], invalid: [-1],
           doc: "The maximum number of different patterns to which the clients of a process subscribe. A published message is compared with " \
                "all patterns that begin like its channel, so patterns that begin with a wildcard cost time for each message. Beyond it, " \
                "addresses give way as with `max_subscriptions_total`. 0 means no limit."

    option :history_bytes, Types::Bytes.new(least: 256 * 1024, zero: true),
           scope: :engine, default: 16 * 1024**2, valid: ["64m"], invalid: ["1k"],
           doc: "The memory for the history: recent messages that are published with a history, among them broadcasts of Action Cable. All " \
                "processes of the server share it; a page of it is used when there are messages for it. The newest message replaces the " \
                "oldest ones. A message that would take more than an eighth of it is delivered, but not kept. A change needs a stop and a " \
                "start. 0 means no history."

    option :history_messages, Types::Count.new(0..1_000_000),
           scope: :engine, default: 100, valid: [1000], invalid: [-1],
           doc: "The most messages of a channel that a client gets from the history. A client that has missed more is told so instead."

    option :history_time, Types::Seconds.new,
           scope: :engine, default: 300, valid: [60], invalid: [0],
           doc: "The time for which a message stays in the history."

    option :messages_pending_bytes, Types::Bytes.new(least: 64 * 1024),
           scope: :engine, default: 64 * 1024**2, valid: ["128m"], invalid: ["1k"],
           doc: "The most bytes of messages of all WebSockets of a process that wait for callbacks. Beyond it, reading from WebSockets " \
                "pauses until there is room; the one that has waited longest is next."

    option :ping_interval, Types::Count.new(0..255),
           scope: :engine, default: 40, valid: [25], invalid: [-1, 256],
           doc: "After this many seconds of silence a WebSocket gets a ping and an event stream a comment; a WebSocket that is silent for " \
                "twice as long is closed. 0 means never. `client.timeout=` changes it for one client."

    option :max_pings, Types::Count.new(0..1_000_000),
           scope: :engine, default: 100, valid: [0], invalid: [-1],
           doc: "The maximum number of pings and pongs that a WebSocket may send in a second; more close it with 1008. 0 means no limit."

    option :resume_rate, Types::Count.new(0..1_000_000),
           scope: :engine, default: 200, valid: [0], invalid: [-1],
           doc: "The most clients in a second that a worker takes over from a worker that ends: it calls `on_takeover`, and Action Cable " \
                "connects them again, in turn with requests. Published messages do not wait for that. 0 means no limit. See " \
                "[realtime.md](realtime.md#clients-survive-restarts)."

    option :drain_spread, Types::Seconds.new(zero: true),
           scope: :engine, default: 5, valid: [60], invalid: [-1],
           doc: "The time over which a worker that is replaced closes the WebSockets and event streams that cannot move to another worker. " \
                "They get the close code 1012, evenly spread, so that they do not all connect again at once. With HTTP/2 this is the last " \
                "part of `long_drain`. It is no longer than the worker's end takes."

    option :deflate, Types::Choice.new(:none, :message, :context),
           scope: :engine, default: :message, valid: ["context"], invalid: ["zip"],
           doc: "The compression of WebSockets, if the client agrees: each `message` by itself, once for all subscribers; with the `context` of " \
                "earlier messages, which takes about 300 KiB a client; or `none`."

    option :deflate_min_bytes, Types::Bytes.new,
           scope: :engine, default: 1024, valid: ["256"], invalid: [-1],
           doc: "Shorter messages are not compressed."

    option :cable_sockets, Types::Choice.new(:auto, :native, :rails),
           scope: :process, embedded: true, default: :auto, valid: ["native"], invalid: ["puma"],
           doc: "Who serves the WebSockets of Action Cable: `native` sockets of the server, or Rails (`rails`), which hijacks them and serves " \
                "them with threads of its own. `auto` means native sockets with `adapter: fairlead` in `config/cable.yml`. See " \
                "[action_cable_sockets.md](action_cable_sockets.md)."

    option :publish_socket, Types::SocketPath.new("PATH"),
           scope: :process, default: ->(values) { PublishSocket.default(values[:directory]) },
           shown_default: "`tmp/sockets/fairlead.sock`, if `config/cable.yml` names the adapter `fairlead`",
           variables: %w[FAIRLEAD_PUBLISH_SOCKET], valid: ["tmp/publish.sock"], invalid: [""],
           doc: "The Unix socket on which other processes of the application publish, such as jobs and consoles: " \
                "see [action_cable.md](action_cable.md#other-processes). Its owner and root may use it. `false` opens none. " \
                "If another server listens on it, this server says so and goes on without it."

    group "Control"

    option :control_url, Types::ControlAddress.new("URL"),
           scope: :process, default: nil, valid: ["tcp://127.0.0.1:9293"], invalid: ["http://127.0.0.1"],
           doc: "Opens a control server at this address, for `fairlead ctl` and for programs that know Puma's. It is `tcp://HOST:PORT`, " \
                "`unix:///PATH`, or `auto`, a Unix socket with a name that nobody can guess, which `state_path` tells. See " \
                "[control.md](control.md)."

    option :control_token, Types::Secret.new("TOKEN"),
           scope: :process, default: nil, none: "a new one at each start", valid: ["secret"], invalid: [""],
           doc: "The secret that a request to the control server must have as `?token=TOKEN` or `authorization: Bearer TOKEN`. `none` means that " \
                "everybody who reaches it may give commands."

    option :control_data_only, Types::Flag.new,
           scope: :process, needs: :control_url, default: false, valid: [true], invalid: ["maybe"],
           doc: "The control server shows statistics and takes no commands."

    shorthand :activate_control_app,
              placeholder: "URL", required: 0, long_flags: [], valid: ["tcp://127.0.0.1:9293"], invalid: [1],
              doc: "Puma's way to set the three options above: `activate_control_app \"unix:///run/control.sock\", auth_token: \"secret\"`. " \
                   "Without arguments it means `auto`; also `no_token: true`, `data_only: true` and `umask: 0177`." do |url = "auto", details = nil|
      details = (details || {}).transform_keys(&:to_sym)
      umask = details[:umask].is_a?(Integer) ? details[:umask].to_s(8) : details[:umask]
      url = "#{url}?umask=0#{umask}" if url && umask
      token = details[:no_token] ? "none" : details[:auth_token]
      { control_url: url, control_token: token, control_data_only: details[:data_only] }
    end

    option :health_url, Types::Address.new("URL", served: false),
           scope: :process, default: nil, valid: ["tcp://127.0.0.1:9294"], invalid: ["http://127.0.0.1"],
           doc: "Answers `/ready` and `/live` at this address, for load balancers and Kubernetes. The control server does so too, but this " \
                "address has nothing else and may be open to others."

    option :state_path, Types::Path.new("PATH"),
           scope: :process, default: nil, short: "-S", aliases: %i[state], long_flags: %w[state], valid: ["tmp/server.state"], invalid: [""],
           doc: "Writes process id, address and token of the control server and the folder to this file, as Puma does, for `fairlead ctl -S`. " \
                "It is removed at the end. The folder has to exist. `fairlead ctl` finds the file by " \
                "itself where the configuration of the current folder names it. Its permissions are `state_permission`."

    option :state_permission, Types::Mode.new("MODE"),
           scope: :process, needs: :state_path, default: 0o600, valid: ["0640"], invalid: ["all"],
           doc: "The permissions of that file, which contains the token. A String is read as octal digits."

    option :systemd_store, Types::Flag.new,
           scope: :process, default: ->(_) { ENV["FDSTORE"].to_i.positive? }, shown_default: "true if systemd offers it ($FDSTORE, systemd 254)",
           valid: [true], invalid: ["maybe"],
           doc: "Has systemd keep the listeners, so that `systemctl restart` loses no connection: the next start gets them back. Needs " \
                "`FileDescriptorStoreMax=` in the unit."

    option :plugin, Types::Text.new("NAME"),
           scope: :process, repeatable: true, default: [], valid: ["tmp_restart"], invalid: [""],
           doc: "Loads a plugin; may be given several times. `tmp_restart`, which restarts when `tmp/restart.txt` is touched, and `systemd` " \
                "are built in. Others are plugins for Puma: see [plugins.md](plugins.md)."

    group "Logs and the process"

    option :log_requests, Types::Flag.new,
           scope: :process, embedded: true, default: false, short: "-v", valid: [true], invalid: ["maybe"],
           doc: "Logs every request to standard output (in a program, to its log), or to the `access_log`."

    option :access_log, Types::Path.new("PATH"),
           scope: :process, embedded: true, default: nil, valid: ["access.log"], invalid: [""],
           doc: "Logs every request to this file, or to standard output for `-`. HUP reopens the file."

    option :access_log_format, Types::LogFormat.new("FORMAT"),
           scope: :engine, default: :combined, valid: ['%h "%r" %s %{lock_wait}W'], invalid: ["pretty"],
           doc: "The format of the access log: `common`, `combined`, `json`, or a line with " \
                "[directives](deployment.md#the-access-log) as in Apache's `LogFormat`. `%{queue_time}W`, `%{waiting_room_time}W` and " \
                "`%{lock_wait}W` say what a request has waited for, and `%{trace_id}x` is its trace."

    option :access_log_skip, Types::Paths.new("LIST"),
           scope: :engine, default: [], valid: ["/up"], invalid: ["up", "/up?full"],
           doc: "Paths of requests, such as health checks, that are left out of the access log if their status is below 400. A path that ends " \
                "with `*` stands for all paths that begin with the rest: `/assets/*`. A list (`%w[/up /ping]` too)."

    option :access_log_sample, Types::Shares.new("LIST"),
           scope: :engine, default: "all", valid: ["2xx=0.01,3xx=0.1"], invalid: ["2xx", "2xx=2", "sometimes=1", 0.5],
           example: 'access_log_sample "2xx" => 0.01, "3xx" => 0.1',
           doc: "The share of requests that the access log has, by status or class of statuses: `2xx=0.01` logs every hundredth successful " \
                "request, chosen at random. All requests with another status are logged. `slow_request` logs slow requests in any case."

    option :metrics_skip, Types::Paths.new("LIST"),
           scope: :engine, default: [], valid: ["/up"], invalid: ["up", "/up?full"],
           doc: "Paths of requests, such as health checks, that the [metrics](control.md#metrics) of requests by method and status leave " \
                "out, whatever their status: probes would hide the times of other requests. `*` at the end as in `access_log_skip`."

    option :slow_request, Types::Seconds.new(zero: true),
           scope: :engine, default: 0, valid: [2], invalid: [-1],
           doc: "Logs a request that has taken longer, from the complete request to the end of its response, with the time that it spent " \
                "[waiting](deployment.md#what-requests-wait-for) and in the application. 0 means none."

    option :quiet, Types::Flag.new,
           scope: :process, embedded: true, default: false, short: %w[-q -s], long_flags: %w[quiet silent],
           valid: [true], invalid: ["maybe"],
           doc: "Prints only warnings and errors. Requests are then logged only if `access_log` is set."

    option :debug, Types::Flag.new,
           scope: :process, embedded: true, default: false, variables: %w[PUMA_DEBUG], valid: [true], invalid: ["maybe"],
           doc: "Shows the backtrace if the start fails, and logs in detail what the server does."

    option :log_format, Types::Choice.new(:text, :json),
           scope: :process, embedded: true, default: :text, valid: ["json"], invalid: ["xml"],
           doc: "The format of the messages of the server, without requests, for which there is `access_log_format`. With `json` " \
                "each is an object in a line, with `time`, `level` (`debug`, `info`, `warn`, `error`), `pid`, `event` and `message`."

    option :log_formatter, Types::Callable.new,
           scope: :process, embedded: true, default: nil, long_flags: [],
           valid: [->(text) { text }], invalid: ["%s"], example: "log_formatter { |text| [Time.now, text].join(' ') }",
           doc: "Makes the line of each message, in place of the process id before it. Not for `log_format :json`, and not for " \
                "requests."

    option :custom_logger, Types::Log.new,
           scope: :process, embedded: true, default: nil, long_flags: [],
           valid: [$stderr], invalid: ["a text"], example: "custom_logger $stderr",
           doc: "Takes the messages in place of standard output and standard error, and the requests if they are logged to standard " \
                "output. A Logger gets each with its level; other objects get lines of text by `write` or `<<`."

    option :shutdown_backtraces, Types::Choice.new(:never, :forced, :always),
           scope: :process, embedded: true, default: :never, valid: ["always"], invalid: ["sometimes"],
           doc: "Logs the backtrace of every thread, with its request, when the server is asked to end (`always`), or only when requests " \
                "take too long and are aborted (`forced`)."

    shorthand :shutdown_debug,
              required: 0, long_flags: [], valid: [true, { on_force: true }], invalid: ["sometimes"],
              example: "shutdown_debug true, on_force: true",
              doc: "Sets `shutdown_backtraces` to `always`, or with `on_force: true` to `forced`." do |wanted = true, keywords = {}|
      next {} if wanted.nil?

      occasion = [wanted, keywords].any? { |one| one.is_a?(Hash) && one[:on_force] } ? :forced : :always
      occasion = :never unless wanted.is_a?(Hash) || Types::Flag.new.parse(wanted)
      { shutdown_backtraces: occasion }
    end

    option :redirect_stdout, Types::Path.new("PATH"),
           scope: :process, default: nil, valid: ["out.log"], invalid: [""],
           doc: "Appends all that is printed to standard output to this file, in an existing folder. HUP reopens the file."

    option :redirect_stderr, Types::Path.new("PATH"),
           scope: :process, default: nil, valid: ["errors.log"], invalid: [""],
           doc: "The same for standard error."

    option :redirect_append, Types::Flag.new,
           scope: :process, default: false, valid: [true], invalid: ["maybe"],
           doc: "Keeps what these files contain. Otherwise they are emptied at the start of the server, unless another " \
                "server writes to them; never when they are reopened."

    shorthand :stdout_redirect,
              required: 0, long_flags: [], valid: ["out.log", "errors.log"], invalid: [""],
              doc: "Sets `redirect_stdout`, `redirect_stderr` and, as a third value, `redirect_append`." do |out = nil, errors = nil, append = nil|
      { redirect_stdout: out, redirect_stderr: errors, redirect_append: append }
    end

    option :pid_file, Types::Path.new("PATH"),
           scope: :process, default: nil, aliases: %i[pidfile], long_flags: %w[pidfile pid-file], variables: %w[PIDFILE],
           valid: ["tmp/server.pid"], invalid: [""],
           doc: "Writes the process id to this file and removes it at the end. If the file belongs to a running server, the start fails."

    option :tag, Types::Label.new("NAME"),
           scope: :process, default: ->(values) { File.basename(values[:directory]) }, shown_default: "the name of the folder",
           valid: ["shop"], invalid: [1],
           doc: "Appears in the process titles. May be empty."

    option :log_config, Types::Flag.new,
           scope: :process, default: false, variables: %w[FAIRLEAD_LOG_CONFIG PUMA_LOG_CONFIG], valid: [true], invalid: ["maybe"],
           doc: "Logs every option, its value and the source of the value at the start, as `--check` prints them."
  end
end
