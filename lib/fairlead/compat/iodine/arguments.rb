# frozen_string_literal: true

module Fairlead
  module Compat
    # Translates the arguments of iodine's command into arguments of Fairlead's.
    class IodineArguments
      # Flag => the setting. A value may follow as the next argument, after "=", or directly: -p 3000, -p=3000, -p3000.
      VALUES = {
        "-b" => :address, "-bind" => :address, "-address" => :address, "-p" => :port, "-port" => :port,
        "-t" => :threads, "-threads" => :threads, "-w" => :workers, "-workers" => :workers, "-www" => :public, "-public" => :public,
        "-k" => :timeout, "-keep-alive" => :timeout, "-tout" => :timeout, "-ping" => :ping,
        "-maxbd" => :max_body, "-max-body" => :max_body, "-maxhd" => :max_header, "-max-header" => :max_header,
        "-maxms" => :max_message, "-max-msg" => :max_message, "-r" => :redis, "-redis" => :redis,
        "-rp" => :redis_ping, "-redis-ping" => :redis_ping, "-C" => :config, "-config" => :config, "-pid" => :pid_file, "-pidfile" => :pid_file,
        "-V" => :verbosity, "-verbosity" => :verbosity, "-cert" => :tls_cert, "-tls-cert" => :tls_cert, "-key" => :tls_key,
        "-tls-key" => :tls_key, "-tls-pass" => :tls_pass, "-tls-password" => :tls_pass
      }.freeze
      SWITCHES = { "-v" => :log, "-log" => :log, "-warmup" => :preload, "--preload" => :preload, "-tls" => :tls }.freeze
      LONGEST_FIRST = VALUES.keys.sort_by { |flag| -flag.length }.freeze

      # Setting => our flag, and the suffix of its unit.
      PLAIN = {
        public: ["--public", ""], timeout: ["--keep-alive-timeout", ""], ping: ["--ping-interval", ""], max_body: ["--body-max-bytes", "m"],
        max_header: ["--head-max-bytes", "k"], max_message: ["--message-max-bytes", "k"]
      }.freeze

      # The files of -C, which are plain Ruby.
      attr_reader :files

      def initialize(arguments, environment)
        @environment = environment
        @settings = {}
        @files = []
        @rest = []
        read(arguments.dup)
      end

      def redis = @settings[:redis] || variable("IODINE_REDIS_URL")

      # +iodine+: the module. A file of -C may have set options there that no flag sets.
      def for_fairlead(iodine)
        ["--no-config", "--bind", bind(iodine), *threads(iodine), *workers(iodine), *plain, *switches(iodine), *@rest, *rackup]
      end

      private

      # Arguments that are not flags of iodine go to Fairlead, except the rackup file.
      def read(arguments)
        until arguments.empty?
          argument = arguments.shift
          next @rest.push(argument, *arguments.shift(arguments.size)) if argument == "--"
          next @settings[SWITCHES[argument]] = true if SWITCHES.key?(argument)

          flag = argument.start_with?("--") ? nil : LONGEST_FIRST.find { |name| argument.start_with?(name) }
          flag ? take(VALUES[flag], flag, argument.delete_prefix(flag), arguments) : other(argument)
        end
      end

      def take(setting, flag, attached, arguments)
        value = attached.empty? ? arguments.shift : attached.delete_prefix("=")
        raise Error, "#{flag}: missing argument" if value.nil?

        setting == :config ? @files << value : @settings[setting] = value
      end

      def other(argument)
        return @rest << argument if argument.start_with?("-") || @name

        @name = argument
      end

      # A name stands for name.ru too.
      def rackup
        return [] unless @name

        [!File.file?(@name) && File.file?("#{@name}.ru") ? "#{@name}.ru" : @name]
      end

      def bind(iodine)
        address = @settings[:address] || variable("ADDRESS") || iodine::DEFAULT_SETTINGS[:address]
        secured = tls? || iodine::DEFAULT_SETTINGS[:tls]
        return unix(address, secured) if address.to_s.match?(%r{\A\.?/})

        port = @settings[:port] || variable("PORT") || iodine::DEFAULT_SETTINGS[:port]
        return Binding.address_for_port(port, address) unless secured

        tls? ? Binding::Ssl.address_for(address, port, tls) : secured.address_for(address, port)
      end

      def unix(path, secured)
        raise Error, "TLS needs a port; #{path} is a Unix socket" if secured

        "unix://#{path}"
      end

      def tls? = %i[tls tls_cert tls_key].any? { |setting| @settings.key?(setting) }

      # The password is not a command, but the text at a place of the Store.
      def tls
        password = Tls::Store.add(@settings[:tls_pass]) if @settings[:tls_pass]
        { cert: @settings[:tls_cert], key: @settings[:tls_key], key_password_command: password }.compact
      end

      def threads(iodine)
        count = number(:threads, "THREADS") || iodine.threads
        count.zero? ? [] : ["--max-threads", share(count).to_s]
      end

      # A single worker means the sole process.
      def workers(iodine)
        count = number(:workers, "WEB_CONCURRENCY", "WORKERS") || iodine.workers
        return [] if count.zero?

        count = share(count)
        ["--workers", count == 1 ? "0" : count.to_s]
      end

      # 0 leaves the choice to Fairlead; -n is the number of processors divided by n.
      def share(count) = count.positive? ? count : [Options::Processors.available / -count, 1].max

      def number(setting, *variables)
        text = @settings[setting] || variables.filter_map { |name| variable(name) }.first
        return 0 if text == "auto"

        text && (Integer(text, 10, exception: false) || raise(Error, "#{setting} must be a whole number, not #{text.inspect}"))
      end

      def plain
        PLAIN.flat_map { |setting, (flag, unit)| @settings.key?(setting) ? [flag, "#{@settings[setting]}#{unit}"] : [] }
      end

      def switches(iodine)
        verbosity = number(:verbosity) || iodine.verbosity
        [*("--log-requests" if @settings[:log]), *("--preload" if @settings[:preload]), *("--quiet" if verbosity < 4), *pid_file]
      end

      def pid_file
        path = @settings[:pid_file] or return []
        ["--pidfile", path.sub(%r{/\z}, "/iodine.pid")]
      end

      def variable(name)
        text = @environment[name].to_s.strip
        text unless text.empty?
      end
    end
  end
end
