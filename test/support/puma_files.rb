# frozen_string_literal: true

module Fairlead
  module Test
    # Realistic configuration files for Puma: from the generators of Rails, from the guides of hosts and deploy tools, and
    # from large applications. A table.
    module PumaFiles # rubocop:disable Metrics/ModuleLength -- a table
      # name         what kind of file it is
      # text         the file
      # environment  variables
      # arguments    of `fairlead`
      # expected     option => value
      # hooks        the hooks with a block
      # accepted     the methods without effect that cause a warning
      # folders      that the file needs
      Shape = Struct.new(:name, :text, :environment, :arguments, :expected, :hooks, :accepted, :folders, keyword_init: true)

      ALL = [] # rubocop:disable Style/MutableConstant -- filled below

      def self.shape(name, text, environment: {}, arguments: [], expected: {}, hooks: [], accepted: [], folders: [])
        ALL << Shape.new(name: name, text: text, environment: environment, arguments: arguments, expected: expected, hooks: hooks,
                         accepted: accepted, folders: folders).freeze
      end

      RAILS_7_0 = <<~'RUBY'
        # Threads of each process: as many as there are connections to the database.
        max_threads_count = ENV.fetch("RAILS_MAX_THREADS") { 5 }
        min_threads_count = ENV.fetch("RAILS_MIN_THREADS") { max_threads_count }
        threads min_threads_count, max_threads_count

        worker_timeout 3600 if ENV.fetch("RAILS_ENV", "development") == "development"

        port ENV.fetch("PORT") { 3000 }
        environment ENV.fetch("RAILS_ENV") { "development" }
        pidfile ENV.fetch("PIDFILE") { "tmp/pids/server.pid" }

        # workers ENV.fetch("WEB_CONCURRENCY") { 2 }
        # preload_app!

        plugin :tmp_restart
      RUBY

      shape "Rails 7.0, as generated", RAILS_7_0,
            expected: { min_threads: 5, max_threads: 5, worker_timeout: 3600, bind: [3000], environment: "development",
                        pid_file: "tmp/pids/server.pid", workers: 0, preload: false, plugin: ["tmp_restart"] }

      shape "Rails 6.1, in production with variables", RAILS_7_0,
            environment: { "RAILS_ENV" => "production", "RAILS_MAX_THREADS" => "12", "RAILS_MIN_THREADS" => "2", "PORT" => "8080",
                           "PIDFILE" => "shop.pid", "WEB_CONCURRENCY" => "3" },
            expected: { min_threads: 2, max_threads: 12, worker_timeout: 60, bind: [8080], environment: "production", pid_file: "shop.pid",
                        workers: 3, preload: true }

      RAILS_7_1 = <<~'RUBY'
        max_threads_count = ENV.fetch("RAILS_MAX_THREADS") { 5 }
        min_threads_count = ENV.fetch("RAILS_MIN_THREADS") { max_threads_count }
        threads min_threads_count, max_threads_count

        if ENV["RAILS_ENV"] == "production"
          require "etc"
          worker_count = Integer(ENV.fetch("WEB_CONCURRENCY") { Etc.nprocessors })
          if worker_count > 1
            workers worker_count
            preload_app!
          end
        end

        worker_timeout 3600 if ENV.fetch("RAILS_ENV", "development") == "development"
        port ENV.fetch("PORT") { 3000 }
        environment ENV.fetch("RAILS_ENV") { "development" }
        pidfile ENV.fetch("PIDFILE") { "tmp/pids/server.pid" }
        plugin :tmp_restart
      RUBY

      shape "Rails 7.1, in production", RAILS_7_1,
            environment: { "RAILS_ENV" => "production", "WEB_CONCURRENCY" => "4" },
            expected: { min_threads: 5, max_threads: 5, workers: 4, preload: true, environment: "production", worker_timeout: 60 }

      shape "Rails 7.1, with one worker", RAILS_7_1,
            environment: { "RAILS_ENV" => "production", "WEB_CONCURRENCY" => "1" },
            expected: { workers: 1, preload: false, environment: "production" }

      RAILS_8 = <<~'RUBY'
        # Requests of one process share the GVL; three threads are a compromise.
        threads_count = ENV.fetch("RAILS_MAX_THREADS", 3)
        threads threads_count, threads_count

        port ENV.fetch("PORT", 3000)

        # `bin/rails restart` restarts the server.
        plugin :tmp_restart

        # Runs the supervisor of Solid Queue inside the server.
        plugin :solid_queue if ENV["SOLID_QUEUE_IN_PUMA"]

        # In other environments only if it is asked for.
        pidfile ENV["PIDFILE"] if ENV["PIDFILE"]
      RUBY

      shape "Rails 7.2 and 8.0, as generated", RAILS_8,
            expected: { min_threads: 3, max_threads: 3, bind: [3000], pid_file: nil, workers: 0 }

      shape "Rails 8, in a container", RAILS_8,
            environment: { "RAILS_ENV" => "production", "PORT" => "80", "WEB_CONCURRENCY" => "2", "PIDFILE" => "/tmp/server.pid" },
            expected: { min_threads: 3, max_threads: 3, bind: [80], pid_file: "/tmp/server.pid", workers: 2, preload: true,
                        environment: "production", plugin: ["tmp_restart"] }

      shape "Heroku's advice", <<~'RUBY', environment: { "PORT" => "5123", "RACK_ENV" => "production", "WEB_CONCURRENCY" => "2" },
        workers Integer(ENV['WEB_CONCURRENCY'] || 2)
        threads_count = Integer(ENV['RAILS_MAX_THREADS'] || 5)
        threads threads_count, threads_count

        preload_app!

        rackup      DefaultRackup
        port        ENV['PORT']     || 3000
        environment ENV['RACK_ENV'] || 'development'

        on_worker_boot do
          ActiveRecord::Base.establish_connection
        end
      RUBY
            expected: { workers: 2, min_threads: 5, max_threads: 5, preload: true, rackup: "config.ru", bind: [5123], environment: "production" },
            hooks: %i[before_worker_boot]

      shape "Capistrano, as its plugin makes it", <<~'RUBY', folders: %w[app/current/public app/shared/tmp],
        #!/usr/bin/env puma

        app_folder = File.expand_path('app')
        shared = "#{app_folder}/shared"
        directory "#{app_folder}/current"
        rackup "config.ru"
        environment 'production'

        tag ''

        pidfile "#{shared}/tmp/pids/puma.pid"
        state_path "#{shared}/tmp/pids/puma.state"
        stdout_redirect "#{shared}/tmp/puma_access.log", "#{shared}/tmp/puma_error.log", true

        threads 0,16
        bind "unix://#{shared}/tmp/sockets/puma.sock"
        activate_control_app "unix://#{shared}/tmp/sockets/pumactl.sock"

        workers 0
        restart_command 'bundle exec puma'

        prune_bundler

        on_restart do
          puts 'Refreshing Gemfile'
          ENV["BUNDLE_GEMFILE"] = ""
        end
      RUBY
            expected: { directory: "app/current", environment: "production", tag: "", pid_file: "APP/shared/tmp/pids/puma.pid", min_threads: 0,
                        max_threads: 16, bind: ["unix://APP/shared/tmp/sockets/puma.sock"], workers: 0,
                        prune_bundler: true, state_path: "APP/shared/tmp/pids/puma.state", restart_command: nil,
                        control_url: "unix://APP/shared/tmp/sockets/pumactl.sock", redirect_stdout: "APP/shared/tmp/puma_access.log",
                        redirect_stderr: "APP/shared/tmp/puma_error.log", redirect_append: true },
            hooks: %i[before_restart]

      shape "an old file with daemonize", <<~'RUBY', folders: %w[shared/log], accepted: %i[daemonize],
        #!/usr/bin/env puma
        shared = File.expand_path("shared")

        environment ENV["RAILS_ENV"] || "production"
        daemonize true
        pidfile "#{shared}/puma.pid"
        state_path "#{shared}/puma.state"
        stdout_redirect "#{shared}/log/puma.stdout.log", "#{shared}/log/puma.stderr.log", true
        bind "unix://shared/puma.sock"
        threads "1", "6"
        workers "2"
        quiet
        activate_control_app
      RUBY
            expected: { environment: "production", pid_file: "SHARED/puma.pid", bind: ["unix://shared/puma.sock"], min_threads: 1, max_threads: 6,
                        workers: 2, quiet: false, log_requests: false, state_path: "SHARED/puma.state", control_url: "auto",
                        redirect_stdout: "SHARED/log/puma.stdout.log", redirect_append: true }

      shape "a daemon by an extra gem", <<~'RUBY', accepted: [:'require "puma/daemon"'],
        require 'puma/daemon'

        port 3000
        workers 3
        daemonize ENV.fetch('DAEMON', nil)
      RUBY
            expected: { bind: [3000], workers: 3 }

      shape "a large social network", <<~'RUBY', environment: { "BIND" => "0.0.0.0", "RAILS_ENV" => "production", "WEB_CONCURRENCY" => "" },
        persistent_timeout ENV.fetch('PERSISTENT_TIMEOUT') { 20 }.to_i

        max_threads_count = ENV.fetch('MAX_THREADS') { 5 }.to_i
        min_threads_count = ENV.fetch('MIN_THREADS') { max_threads_count }.to_i
        threads min_threads_count, max_threads_count

        if ENV['SOCKET']
          bind "unix://#{ENV['SOCKET']}"
        else
          bind "tcp://#{ENV.fetch('BIND', '127.0.0.1')}:#{ENV.fetch('PORT', 3000)}"
        end

        environment ENV.fetch('RAILS_ENV') { 'development' }
        workers     Integer(ENV.fetch('PROCESSES') { 2 })

        preload_app!

        on_worker_boot do
          ActiveSupport.on_load(:active_record) { ActiveRecord::Base.establish_connection }
        end

        plugin :tmp_restart

        set_remote_address(proxy_protocol: :v1) if ENV['PROXY_PROTO_V1'] == 'true'
      RUBY
            expected: { keep_alive_timeout: 20, min_threads: 5, max_threads: 5, bind: ["tcp://0.0.0.0:3000"], environment: "production", workers: 2,
                        preload: true },
            hooks: %i[before_worker_boot]

      shape "a large host of repositories", <<~'RUBY', folders: %w[run],
        require_relative_path = File.expand_path('run')

        pidfile "#{require_relative_path}/puma.pid"
        state_path "#{require_relative_path}/puma.state"

        stdout_redirect "#{require_relative_path}/puma.stdout.log", "#{require_relative_path}/puma.stderr.log", true

        threads 1, 8
        queue_requests false
        bind "unix://run/app.socket"
        bind 'tcp://127.0.0.1:8080'

        workers 3
        preload_app!

        on_restart { Probes.before_master_restart }
        before_fork { Probes.before_fork }
        on_worker_boot { Probes.worker_start }
        on_worker_shutdown { Probes.worker_stop }

        worker_timeout 60
        wait_for_less_busy_worker ENV.fetch('PUMA_WAIT_FOR_LESS_BUSY_WORKER', 0.001).to_f

        tag 'repositories'
        log_formatter { |str| "{\"message\": #{str.inspect}}" }

        lowlevel_error_handler do |ex, env|
          Probes.track(ex, env)
          [500, {}, ["An error has occurred and was reported.\n"]]
        end
      RUBY
            expected: { pid_file: "RUN/puma.pid", min_threads: 1, max_threads: 8, bind: ["unix://run/app.socket", "tcp://127.0.0.1:8080"], workers: 3,
                        preload: true, worker_timeout: 60, tag: "repositories", state_path: "RUN/puma.state",
                        redirect_stderr: "RUN/puma.stderr.log" },
            hooks: %i[before_restart before_fork before_worker_boot before_worker_shutdown],
            accepted: %i[queue_requests wait_for_less_busy_worker]

      shape "a large host of repositories, as its installation from source has it", <<~'RUBY', folders: %w[run],
        rackup 'config.ru'
        pidfile File.expand_path('run/puma.pid')
        state_path File.expand_path('run/puma.state')
        threads 1, 16
        queue_requests false
        bind "unix://run/app.socket"
        workers 3

        Probes = Struct.new(:options).new unless defined?(Probes)
        on_restart { Probes.options }
        before_fork { Probes.options }

        Probes.options = @config.options
        raise "no workers" unless Probes.options[:workers] == 3
        on_worker_boot { Probes.options }
        Probes.options[:before_worker_shutdown] << ->(_index) { Probes.options = nil }

        preload_app!
        tag 'repositories-worker'
        wait_for_less_busy_worker 0.001
        log_formatter { |text| text }
        lowlevel_error_handler { |_error, _env| [500, {}, ["An error has occurred.\n"]] }
      RUBY
            expected: { rackup: "config.ru", pid_file: "RUN/puma.pid", state_path: "RUN/puma.state", min_threads: 1, max_threads: 16, workers: 3,
                        bind: ["unix://run/app.socket"], preload: true, tag: "repositories-worker" },
            hooks: %i[before_restart before_fork before_worker_boot before_worker_shutdown],
            accepted: %i[queue_requests wait_for_less_busy_worker]

      shape "a forum for developers", <<~'RUBY', environment: { "WEB_CONCURRENCY" => "2", "RAILS_ENV" => "production" },
        threads_count = ENV.fetch("RAILS_MAX_THREADS", 5)
        threads threads_count, threads_count
        port ENV.fetch("PORT", 3000)
        environment ENV.fetch("RAILS_ENV", "development")
        workers ENV.fetch("WEB_CONCURRENCY", 2)
        worker_shutdown_timeout ENV.fetch("WORKER_SHUTDOWN", 25).to_i

        if ENV.fetch("RAILS_ENV", "development") == "production"
          before_fork do
            ActiveRecord::Base.connection_pool.disconnect!
          end
        end

        preload_app!

        on_worker_boot do
          ActiveRecord::Base.establish_connection
        end

        plugin :tmp_restart
      RUBY
            expected: { min_threads: 5, max_threads: 5, bind: [3000], environment: "production", workers: 2, shutdown_timeout: 25, preload: true },
            hooks: %i[before_fork before_worker_boot]

      shape "a help desk", <<~'RUBY',
        threads_count_min = Integer(ENV['MIN_THREADS'] || 5)
        threads_count_max = Integer(ENV['MAX_THREADS'] || 30)
        threads threads_count_min, threads_count_max

        environment ENV.fetch('RAILS_ENV', 'development')

        worker_count = Integer(ENV['DESK_WEB_CONCURRENCY'] || ENV['WEB_CONCURRENCY'] || 0)
        workers worker_count
        preload_app! if worker_count.positive?

        stdout_redirect nil, nil if ENV['NEVER_SET']

        on_booted do
          Thread.new { }.join
        end
      RUBY
            expected: { min_threads: 5, max_threads: 30, workers: 0, preload: false, environment: "development" }, hooks: %i[after_booted]

      shape "a site for links", <<~'RUBY', environment: { "RAILS_ENV" => "production" }, folders: %w[tmp/pids log],
        max_threads_count = ENV.fetch("RAILS_MAX_THREADS") { 5 }
        threads max_threads_count, max_threads_count

        environment ENV.fetch("RAILS_ENV") { "development" }

        if ENV["RAILS_ENV"] == "production"
          bind "unix:///tmp/links.sock?umask=0111"
          workers 4
          prune_bundler
          pidfile "tmp/pids/puma.pid"
          stdout_redirect "log/puma.log", "log/puma.err", true
        else
          port ENV.fetch("PORT") { 3000 }
          plugin :tmp_restart
        end
      RUBY
            expected: { environment: "production", bind: ["unix:///tmp/links.sock?umask=0111"], workers: 4, preload: false,
                        pid_file: "tmp/pids/puma.pid", redirect_stdout: "log/puma.log", redirect_stderr: "log/puma.err" }

      shape "PumaWorkerKiller", <<~'RUBY',
        workers 3
        threads 5, 5
        preload_app!

        before_fork do
          require 'puma_worker_killer'

          PumaWorkerKiller.config do |config|
            config.ram           = 1024
            config.frequency     = 5
            config.percent_usage = 0.98
            config.rolling_restart_frequency = 12 * 3600
          end
          PumaWorkerKiller.start
        end

        on_worker_boot { ActiveRecord::Base.establish_connection }
      RUBY
            expected: { workers: 3, min_threads: 5, max_threads: 5, preload: true }, hooks: %i[before_fork before_worker_boot]

      shape "behind nginx, with an option for each limit", <<~'RUBY', accepted: %i[io_selector_backend worker_culling_strategy],
        bind "unix:///run/shop/puma.sock?backlog=2048"
        threads 2, 8
        workers :auto
        worker_timeout "90"
        worker_boot_timeout "120"
        worker_shutdown_timeout "150"
        persistent_timeout "6"
        first_data_timeout "3"
        http_content_length_limit 10 * 1024 * 1024
        early_hints true
        log_requests
        io_selector_backend :select
        silence_single_worker_warning
        mutate_stdout_and_stderr_to_sync_on_write
        fork_worker 500
        max_fast_inline Float::INFINITY
        worker_culling_strategy :oldest
      RUBY
            expected: { bind: ["unix:///run/shop/puma.sock?backlog=2048"], min_threads: 2, max_threads: 8,
                        workers: [Options::Processors.available, 64].min, worker_timeout: 90, worker_boot_timeout: 120, shutdown_timeout: 150,
                        keep_alive_timeout: 6, head_timeout: 3, body_timeout: 3, body_max_bytes: 10 * 1024 * 1024, early_hints: true,
                        log_requests: true, max_keep_alive: 0, refork_after: 1000.div(Options::Processors.available.clamp(2, 5)) }

      shape "a gateway that trusts a header", <<~'RUBY',
        set_remote_address header: "X-Real-IP"
        set_default_host "127.0.0.1"
        port 8000
        threads 4
        lowlevel_error_handler { |error, env, status| [status, {}, ["sorry"]] }
        supported_http_methods :any
        rack_url_scheme "https"
        enable_keep_alives false
        force_shutdown_after 30
        raise_exception_on_sigterm false
      RUBY
            expected: { bind: ["tcp://127.0.0.1:8000"], min_threads: 4, max_threads: 4, remote_address: "header:X-Real-IP",
                        supported_http_methods: [],
                        rack_url_scheme: :https, enable_keep_alives: false, shutdown_timeout: 30 }

      shape "systemd's socket", <<~'RUBY', environment: { "RAILS_ENV" => "staging" },
        bind_to_activated_sockets 'only'
        idle_timeout 600
        workers 2
        environment ENV["RAILS_ENV"]
        drain_on_shutdown
        queue_requests true
        nakayoshi_fork true
        after_booted { puts "up" }
        after_stopped { puts "down" }
        before_thread_start { Thread.current[:started] = true }
      RUBY
            expected: { workers: 2, environment: "staging", bind_to_activated_sockets: :only, idle_timeout: 600 },
            hooks: %i[after_booted after_stopped before_thread_start]

      shape "everything new in Puma 8", <<~'RUBY', accepted: %i[allow_underscore_headers max_io_threads], arguments: %w[-w 2],
        single { threads 1, 1 }
        cluster do
          threads 2, 4
          before_worker_boot(:pool) { |index, data| data[:pool] = index }
          before_worker_shutdown(:pool) { |_index, data| data.delete(:pool) }
        end
        max_io_threads 4
        fiber_per_request
        shutdown_debug on_force: true
        after_worker_shutdown { |worker| worker }
        before_refork { GC.start }
        allow_underscore_headers
      RUBY
            expected: { workers: 2, min_threads: 2, max_threads: 4 },
            hooks: %i[after_worker_shutdown before_refork before_worker_boot before_worker_shutdown]

      shape "an application in one file", <<~'RUBY', environment: { "WEB_CONCURRENCY" => "auto" }, arguments: %w[-t 3:3 -w 0],
        port ENV.fetch('PORT', 0)

        app do |env|
          [200, {}, ["embedded"]]
        end

        threads 1, 9
      RUBY
            expected: { bind: [0], min_threads: 3, max_threads: 3, workers: 0 }

      shape "more Ruby than options", <<~'RUBY', environment: { "THREADS" => "2:7" },
        require "json"

        APP_ROOT = Dir.pwd unless defined?(APP_ROOT)
        limits = JSON.parse('{"threads": [2, 7], "ports": ["127.0.0.1:4000", "127.0.0.1:4001"]}')

        def each_address(list)
          list.each { |address| bind "tcp://#{address}" }
        end

        threads(*limits.fetch("threads"))
        each_address limits.fetch("ports")
        clear_binds! if ENV["NO_PORTS"]
        Signal.trap("WINCH", "DEFAULT")
        tag [File.basename(__FILE__), get(:max_threads)].join("-")
        warn "not production" if get(:environment) == "production"
        [:before_fork].each { |hook| public_send(hook) { 1 } }
      RUBY
            expected: { min_threads: 2, max_threads: 7, bind: ["tcp://127.0.0.1:4000", "tcp://127.0.0.1:4001"], tag: "FILE-7" },
            hooks: %i[before_fork]
    end
  end
end
