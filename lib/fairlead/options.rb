# frozen_string_literal: true

require "etc"
require "fairlead/options/option"

module Fairlead
  # Every option there is, once. Flags, the methods of the configuration file, environment variables, validation,
  # --help, --check, docs/configuration.md and what the engine receives are all derived from this table, and no default
  # is written anywhere else. options/option.rb says what the attributes of an entry mean. It is longer than a file should be
  # because it is one table: in parts, nobody would find an option, or see that one is there already.
  module Options
    extend Enumerable

    autoload :Documentation, "fairlead/options/documentation"

    @entries = {}

    class << self
      def each(&block) = @entries.each_value(&block)

      # The entry of that name or alias, or nil.
      def [](name)
        @entries[name] || find { |entry| entry.aliases.include?(name) }
      end

      def fetch(name) = self[name] || raise(KeyError, "there is no option #{name.inspect}")

      # The entries that hold a value of their own.
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

      # Dir.tmpdir would find it too, but loads FileUtils. Who may remove files from the folder makes no difference here:
      # those that go there lose their names at once.
      def folder_for_temporary_files
        folders = [ENV.fetch("TMPDIR", nil), Etc.systmpdir].compact
        File.expand_path(folders.find { |path| File.directory?(path) && File.writable?(path) } || ".")
      end
    end

    group "Listening"

    option :bind, Types::Address.new("URI"),
           scope: :process, repeatable: true, short: "-b",
           default: ->(_) { [Binding.default_uri] }, shown_default: "tcp://[::]:9292 (tcp://0.0.0.0:9292 without IPv6)",
           valid: ["tcp://127.0.0.1:3000"], invalid: ["gopher://127.0.0.1"],
           doc: "Listens on this address; may be given several times. `tcp://HOST:PORT`, where HOST may be `localhost` (every " \
                "loopback address) or `[::]` (IPv6 and IPv4) and port 0 means any free one; `unix:///PATH`, with `umask=0111`, " \
                "`mode=0660` in the query; `unix://@NAME` for an abstract socket on Linux. `backlog=N` in the query overrides " \
                "`backlog`."

    shorthand :port,
              placeholder: "PORT", short: "-p", variables: %w[PORT], valid: ["3000"], invalid: ["http"],
              doc: "Listens on this TCP port, on every interface. `port 3000, \"127.0.0.1\"` in the configuration file names the " \
                   "host too; without it, `rails server` and `rackup` decide, which in development is `localhost`." do |port, host = nil|
      port.nil? ? {} : { bind: Binding.uri_for_port(Types::Count.new(0..65_535).parse(port), host) }
    end

    option :backlog, Types::Count.new(1..65_535),
           scope: :process, default: 1024, valid: [512], invalid: [0],
           doc: "How many connections the system holds ready for a server that is busy. The system may cap it (on Linux " \
                "`net.core.somaxconn`)."

    option :max_connections, Types::Count.new(0..10_000_000),
           scope: :engine, default: 0, valid: [2000], invalid: [-1],
           doc: "How many connections a process has open at most; further ones are answered 503. Those that wait in the waiting " \
                "room count too: no worker takes in more. 0 means three quarters of the descriptors that the server may use: the " \
                "open-file limit, which is raised to the hard limit at the start, less what is open then, less a quarter of it (at " \
                "most 1,024) for the application. However many are asked for, an eighth of them is kept for files."

    group "Processes and threads"

    option :workers, Types::Workers.new(0..64),
           scope: :process, default: 0, short: "-w", variables: %w[WEB_CONCURRENCY], valid: ["auto"], invalid: ["many"],
           doc: "Serves with that many worker processes; 0 serves from the only process there is. `auto` means one for each processor."

    shorthand :threads,
              placeholder: "MIN:MAX", short: "-t", valid: ["1:5"], invalid: ["few"],
              doc: "Sets `min_threads` and `max_threads`; a single number sets both. `threads 1, 5` in the configuration file." do |min, max = nil|
      min, max = min.split(":", 2) if max.nil? && min.is_a?(String) && min.include?(":")
      { min_threads: min, max_threads: max || min }
    end

    option :min_threads, Types::Count.new(0..500),
           scope: :engine, default: 0, variables: %w[FAIRLEAD_MIN_THREADS RAILS_MIN_THREADS MIN_THREADS], valid: [1], invalid: ["none"],
           doc: "How many Ruby threads a process starts with. Further ones start when they are needed."

    option :max_threads, Types::Count.new(1..500),
           scope: :engine, default: 5, variables: %w[FAIRLEAD_MAX_THREADS RAILS_MAX_THREADS MAX_THREADS], valid: [16], invalid: [0],
           doc: "How many requests a process can have inside the application at once."

    option :preload, Types::Flag.new,
           scope: :process, aliases: %i[preload_app!],
           default: ->(values) { values[:workers] > 1 }, shown_default: "true with more than one worker",
           valid: [false], invalid: ["maybe"],
           doc: "Loads the application before the workers are forked, so that they share its memory. Connections, threads and the " \
                "like that it opens while loading have to be opened again in `before_worker_boot`."

    option :waiting_room, Types::Flag.new,
           scope: :engine, default: true, valid: [false], invalid: ["maybe"],
           doc: "Lets a request that waits in a busy worker move to one with a free thread. Has no effect without workers."

    option :worker_timeout, Types::Seconds.new,
           scope: :process, default: 60, valid: [30], invalid: [0],
           doc: "A worker that shows no sign of life for that long is ended and replaced."

    option :worker_boot_timeout, Types::Seconds.new,
           scope: :process, default: 60, valid: [120], invalid: ["soon"],
           doc: "A worker that is not ready to serve after that long is ended and replaced."

    option :shutdown_timeout, Types::Seconds.new(zero: true),
           scope: :process, default: 30, aliases: %i[worker_shutdown_timeout], valid: [10], invalid: [-1],
           doc: "How long requests may take to finish when the server is asked to end. After it they are cut off."

    group "The application"

    option :rackup, Types::Text.new("PATH"),
           scope: :process, default: "config.ru", valid: ["app.ru"], invalid: [""],
           doc: "The file that describes the application; also the argument of `fairlead`."

    option :environment, Types::Text.new("NAME"),
           scope: :process, default: "development", short: "-e", variables: %w[APP_ENV RACK_ENV RAILS_ENV],
           valid: ["production"], invalid: [""],
           doc: "The environment the application runs in; RACK_ENV is set to it. Details of an error are shown to the client in " \
                "`development` only."

    option :directory, Types::Folder.new("DIR"),
           scope: :process, default: ->(_) { Dir.pwd }, shown_default: "the current folder", long_flags: %w[dir directory],
           valid: ["."], invalid: ["/nowhere/at/all"],
           doc: "Changes to this folder before anything else is read or loaded."

    option :config, Types::Text.new("PATH"),
           scope: :process, default: nil, shown_default: "config/fairlead/ENVIRONMENT.rb, else config/fairlead.rb", short: "-C", in_file: false,
           valid: ["config/fairlead.rb"], invalid: [""],
           doc: "Reads this configuration file; `-` (or --no-config) reads none, not even the default one."

    option :early_hints, Types::Flag.new,
           scope: :engine, default: false, valid: [true], invalid: ["maybe"],
           doc: "Offers `rack.early_hints` to the application, which answers 103 with it."

    group "Requests"

    option :head_timeout, Types::Seconds.new,
           scope: :engine, default: 30, aliases: %i[first_data_timeout], valid: [5], invalid: [0],
           doc: "How long the head of a request may take from its first byte to its last, however steadily it trickles in."

    option :head_max_bytes, Types::Bytes.new(least: 1024),
           scope: :engine, default: 64 * 1024, valid: ["128k"], invalid: ["10"],
           doc: "The largest head (request line and header) that is accepted; a larger one is answered 431."

    option :head_max_fields, Types::Count.new(8..128),
           scope: :engine, default: 100, valid: [128], invalid: [0, 129],
           doc: "How many header fields a request may have; more are answered 431."

    option :target_max_bytes, Types::Bytes.new(least: 64),
           scope: :engine, default: 16 * 1024, valid: ["8k"], invalid: ["1"],
           doc: "The longest request target (path and query) that is accepted; a longer one is answered 414."

    option :body_timeout, Types::Seconds.new,
           scope: :engine, default: 20, valid: [60], invalid: [0],
           doc: "How long a request body may stand still, or be behind `body_min_rate`. One that takes longer is answered 408."

    option :body_min_rate, Types::Bytes.new,
           scope: :engine, default: 500, valid: ["1k"], invalid: [-1],
           doc: "The slowest rate, in bytes a second, at which a request body may arrive; 0 means any. A body that falls behind it by " \
                "`body_timeout` is answered 408, however fast it came before."

    option :body_max_bytes, Types::Bytes.new,
           scope: :engine, default: 1024**3, aliases: %i[http_content_length_limit], valid: ["50m"], invalid: ["huge"],
           doc: "The largest request body that is accepted; a larger one is answered 413. 0 means any."

    option :body_memory_bytes, Types::Bytes.new,
           scope: :engine, default: 112 * 1024, valid: ["1m"], invalid: [-1],
           doc: "A request body up to this size is kept in memory; a larger one goes to a temporary file that has no name. Where " \
                "too many files are open for that, it is not read until there is a descriptor, for `body_timeout` at most; then " \
                "it is answered 503."

    option :body_disk_total_bytes, Types::Bytes.new,
           scope: :engine, default: 4 * 1024**3, valid: ["20g"], invalid: ["much"],
           doc: "How much all request bodies of a process may take of the disk together, though never less than `body_max_bytes`. A " \
                "body that wants more is answered 503. 0 means any."

    option :request_memory_total_bytes, Types::Bytes.new(least: 1024**2),
           scope: :engine, default: 256 * 1024**2, valid: ["1g"], invalid: ["1k"],
           doc: "How much memory the heads and bodies of all requests of a process may take together, with those messages of " \
                "WebSockets that have not come whole; 32 KiB of each do not count. When there is no more, bodies go to temporary " \
                "files sooner, larger heads are answered 503, and WebSockets with larger messages are closed with 1013."

    option :temp_dir, Types::Folder.new("DIR"),
           scope: :engine, default: ->(_) { folder_for_temporary_files }, shown_default: "the system's",
           valid: ["."], invalid: ["/nowhere/at/all"],
           doc: "Where temporary files go."

    group "Answers and connections"

    option :keep_alive_timeout, Types::Seconds.new,
           scope: :engine, default: 65, aliases: %i[persistent_timeout], valid: [15], invalid: [0],
           doc: "How long a connection may stay idle between two requests. Longer than that of the proxy in front, or it will now " \
                "and then send a request into a connection that is just being closed."

    option :write_timeout, Types::Seconds.new,
           scope: :engine, default: 30, valid: [10], invalid: [0],
           doc: "A client that takes nothing of its answer for that long, or is that far behind `write_min_rate`, is cut off."

    option :write_min_rate, Types::Bytes.new,
           scope: :engine, default: 500, valid: ["1k"], invalid: [-1],
           doc: "The slowest rate, in bytes a second, at which a client may take its answer, or what waits for a WebSocket; 0 means any. " \
                "One that falls behind it by `write_timeout` is cut off, however fast it was before."

    option :response_memory_bytes, Types::Bytes.new(least: 4096),
           scope: :engine, default: 256 * 1024, valid: ["1m"], invalid: [0],
           doc: "How much of an answer that the client has not taken yet is kept in memory; what is above it goes to a temporary file."

    option :response_disk_bytes, Types::Bytes.new,
           scope: :engine, default: 1024**3, valid: ["100m"], invalid: [-1],
           doc: "How much of an answer may wait in that temporary file."

    option :response_memory_total_bytes, Types::Bytes.new(least: 1024**2),
           scope: :engine, default: 128 * 1024**2, valid: ["64m"], invalid: ["1k"],
           doc: "How much memory the unsent answers of a worker may take together. Beyond it, threads that write answers wait in line; " \
                "and if requests wait for these threads, the client that takes its answer most slowly is cut off."

    option :response_disk_total_bytes, Types::Bytes.new,
           scope: :engine, default: 2 * 1024**3, valid: ["100m"], invalid: [-1],
           doc: "How much disk the unsent answers of a worker may take together. Beyond it they stay in memory."

    group "Files"

    option :public_dir, Types::Folder.new("DIR"),
           scope: :engine, default: nil, aliases: %i[public], long_flags: %w[public public-dir], foreign_flags: %w[-www],
           valid: ["."], invalid: ["/nowhere/at/all"],
           doc: "Serves the files of this folder before the application is asked. Without a rackup file they are all there is."

    option :public_hidden, Types::Flag.new,
           scope: :engine, needs: :public_dir, default: false, valid: [true], invalid: ["maybe"],
           doc: "Serves names in `public_dir` that begin with a dot or end with `~`, too. `/.well-known/` is always served."

    option :public_symlinks, Types::Choice.new(:inside, :none, :all),
           scope: :engine, default: :inside, valid: ["all"], invalid: ["some"],
           doc: "Which symbolic links are followed in `public_dir` and beneath `sendfile_root`: those that stay `inside`, `none`, or `all`."

    option :public_cache_control, Types::CacheRule.new("RULE"),
           scope: :engine, needs: :public_dir, repeatable: true, default: [], none: "the built-in rules",
           valid: ["/fonts/*: public, max-age=604800"], invalid: ["/fonts/*"],
           doc: "Sets `cache-control` of the files whose path matches, as `GLOB: VALUE`; the first match counts. Otherwise a name " \
                "with a fingerprint is kept for a year, any other file asked for anew."

    option :sendfile_root, Types::SendfileRoot.new("ROOT"),
           scope: :engine, repeatable: true, default: [],
           valid: ["/internal/=."], invalid: ["/nowhere/at/all"],
           doc: "Answers with the file that `x-sendfile` names, beneath `DIR`, or `x-accel-redirect`, for `PREFIX=DIR`; may be given " \
                "several times."

    option :file_cache_bytes, Types::Bytes.new,
           scope: :engine, default: 32 * 1024**2, valid: ["128m"], invalid: [-1],
           doc: "How much of the small files each process keeps in memory; 0 means none."

    option :compress, Types::Flag.new,
           scope: :engine, default: false, valid: [true], invalid: ["maybe"],
           doc: "Compresses what the application answers, with brotli, zstd or gzip. Not for pages that show a secret beside what a " \
                "stranger can choose (BREACH)."

    option :compress_min_bytes, Types::Bytes.new,
           scope: :engine, needs: :compress, default: 1024, valid: ["4k"], invalid: [-1],
           doc: "Shorter answers are sent as they are."

    option :compress_types, Types::MediaType.new("TYPE"),
           scope: :engine, needs: :compress, repeatable: true, default: [], none: "the built-in list",
           valid: ["text/*"], invalid: ["text"],
           doc: "Compresses answers of this type only, such as `application/json` or `text/*`; may be given several times."

    group "Real time"

    option :message_max_bytes, Types::Bytes.new(least: 125),
           scope: :engine, default: 1024**2, valid: ["256k"], invalid: ["1"],
           doc: "The longest message that is accepted from a WebSocket; a longer one closes it with 1009."

    option :client_pending_bytes, Types::Bytes.new(least: 1024),
           scope: :engine, default: 1024**2, valid: ["4m"], invalid: ["none"],
           doc: "How many bytes may wait for a client (a WebSocket or an event stream) that does not take them. What happens " \
                "when there are more is for `client_overflow` to say. It also bounds what may wait for its callbacks: a WebSocket " \
                "whose messages are not taken is not read on."

    option :client_overflow, Types::Choice.new(:close, :drop),
           scope: :engine, default: :close, valid: ["drop"], invalid: ["grow"],
           doc: "What becomes of a client for which too much waits: `close` closes it (a WebSocket with 1013), so that it can connect " \
                "again; `drop` leaves out what is sent to it until it has caught up."

    option :messages_pending_bytes, Types::Bytes.new(least: 64 * 1024),
           scope: :engine, default: 64 * 1024**2, valid: ["128m"], invalid: ["1k"],
           doc: "How many bytes of messages may wait for callbacks, those of all WebSockets of a process together. Beyond it none is " \
                "read on until there is room; who waits longest is next."

    option :ping_interval, Types::Count.new(0..255),
           scope: :engine, default: 40, valid: [25], invalid: [-1, 256],
           doc: "After that many seconds of silence a WebSocket gets a ping and an event stream a comment; a WebSocket that has not been " \
                "heard for twice as long is closed. 0 means never. `client.timeout=` changes it for one client."

    option :max_pings, Types::Count.new(0..1_000_000),
           scope: :engine, default: 100, valid: [0], invalid: [-1],
           doc: "How many pings and pongs a WebSocket may send in a second; more close it with 1008. 0 means any number."

    option :deflate, Types::Choice.new(:none, :message, :context),
           scope: :engine, default: :message, valid: ["context"], invalid: ["zip"],
           doc: "How WebSockets compress, if the client agrees: `message` by message, once for all subscribers; with the `context` of " \
                "earlier ones, at some 300 KiB a client; or `none`."

    option :deflate_min_bytes, Types::Bytes.new,
           scope: :engine, default: 1024, valid: ["256"], invalid: [-1],
           doc: "Shorter messages are sent as they are."

    group "Logs and the process"

    option :log_requests, Types::Flag.new,
           scope: :process, default: false, short: "-v", valid: [true], invalid: ["maybe"],
           doc: "Logs every request to standard output, or to where `access_log` says."

    option :access_log, Types::Text.new("PATH"),
           scope: :process, default: nil, valid: ["access.log"], invalid: [""],
           doc: "Logs every request to this file, or to standard output for `-`. HUP opens the file anew."

    option :access_log_format, Types::Choice.new(:common, :combined, :json),
           scope: :engine, default: :combined, valid: ["json"], invalid: ["pretty"],
           doc: "What a line of the access log looks like."

    option :quiet, Types::Flag.new,
           scope: :process, default: false, short: "-q", long_flags: %w[quiet silent], valid: [true], invalid: ["maybe"],
           doc: "Prints warnings and errors only: neither what the server does nor, unless `access_log` is set, the requests."

    option :pid_file, Types::Text.new("PATH"),
           scope: :process, default: nil, aliases: %i[pidfile], long_flags: %w[pidfile pid-file], variables: %w[PIDFILE],
           valid: ["tmp/server.pid"], invalid: [""],
           doc: "Writes the id of the process to this file and removes it at the end. The file of a server that still runs is an error."

    option :tag, Types::Text.new("NAME"),
           scope: :process, default: ->(values) { File.basename(values[:directory]) }, shown_default: "the name of the folder",
           valid: ["shop"], invalid: [""],
           doc: "Stands in the titles of the processes."
  end
end
