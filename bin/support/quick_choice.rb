#!/usr/bin/env ruby
# frozen_string_literal: true

# Reads paths of changed files, one per line, and prints the steps of `bin/test --quick`: one line per step, with its
# name and its arguments. "comments " before a Rust file means that only its comments have changed. The last line,
# `out`, names the omitted tests, for the reader. With the argument `smoke`, prints the smoke tests instead.

module Fairlead
  # The tests that `bin/test --quick` runs after a change to some files. Knows paths, runs nothing. A Ruby file has its
  # own unit tests, or its folder's. A Rust file has the unit tests of its crate, and the tests of the crate's test
  # folder with the same name. TESTS names the integration tests, each quick. Changed test files run as well.
  class QuickChoice
    # The crates with tests, and cargo's arguments for their unit tests.
    CRATES = {
      "wire" => "--lib", "tls-record" => "--lib", "engine" => "--lib", "supervisor" => "--lib", "load" => "--bins", "acme" => "--bins"
    }.freeze

    # A crate => another crate, which has no tests of its own and is covered by this one's.
    TESTED_BY = { "supervisor" => "shared-memory" }.freeze

    # Files that can change every crate.
    WORKSPACE = %w[Cargo.toml Cargo.lock].freeze

    # Files that the tests of the tools check.
    TOOLS = %w[.ci bench bin rakelib test/soak test/support test/test_helper.rb test/tools].freeze

    # Unit tests that check all of lib.
    UNIT = %w[test/unit/native_calls_test.rb test/unit/sig_test.rb].freeze

    # One test file for each folder of integration tests: quick, and with wide coverage.
    SMOKE = %w[
      test/integration/acme/http_challenge_test.rb
      test/integration/applications/chat_test.rb
      test/integration/cable/turns_test.rb
      test/integration/clients/vanishing_client_test.rb
      test/integration/command/sources_test.rb
      test/integration/compat/upgrade_test.rb
      test/integration/control/control_server_test.rb
      test/integration/embedding/server_test.rb
      test/integration/files/static_test.rb
      test/integration/hijack/partial_hijack_test.rb
      test/integration/http/pipelining_test.rb
      test/integration/http2/env_test.rb
      test/integration/processes/workers_test.rb
      test/integration/proxies/forwarded_test.rb
      test/integration/pub_sub/machines_test.rb
      test/integration/publish_socket/access_test.rb
      test/integration/rack/streaming_body_test.rb
      test/integration/rails/default_server_test.rb
      test/integration/real_time/push/client_test.rb
      test/integration/scheduling/threads_test.rb
      test/integration/supervision/start_folder_test.rb
      test/integration/tls/client_certificates_test.rb
    ].freeze

    # Folders of integration tests that are too long for one smoke test, each with the test for its part.
    PARTS = %w[
      test/integration/real_time/pub_sub/channels_test.rb
      test/integration/real_time/websocket/pings_test.rb
    ].freeze

    # The integration tests of a file or a folder; `options` also stands for `options.rb` and `options.rs`. A folder of tests stands for
    # its smoke test. If several entries contain a file, all of them count. A file without an entry has GENERAL.
    TESTS = {
      "lib/fairlead/acme" => %w[test/integration/acme],
      "lib/fairlead/capybara.rb" => %w[test/integration/embedding/capybara_test.rb],
      "lib/fairlead/cli.rb" => %w[test/integration/command],
      "lib/fairlead/compat/puma" => %w[test/integration/control/plugins_test.rb],
      "lib/fairlead/plugins.rb" => %w[test/integration/control/plugins_test.rb],
      "lib/fairlead/compat" => %w[test/integration/compat test/integration/applications],
      "lib/fairlead/configuration" => %w[test/integration/command],
      "lib/fairlead/control" => %w[test/integration/control],
      "lib/fairlead/engine" => %w[test/integration/embedding test/integration/scheduling],
      "lib/fairlead/group.rb" => %w[test/integration/embedding/group_test.rb],
      "lib/fairlead/migrate.rb" => %w[test/integration/command/sources_test.rb],
      "lib/fairlead/native" => %w[test/integration/processes],
      "lib/fairlead/state_folder.rb" => %w[test/integration/processes],
      "lib/fairlead/system_text.rb" => %w[test/integration/command/bytes_test.rb],
      "lib/fairlead/whole_file.rb" => %w[test/integration/processes],
      "lib/fairlead/listening" => %w[test/integration/http/listeners_test.rb test/integration/http/peer_address_test.rb],
      "lib/fairlead/integrations" => %w[test/integration/embedding test/integration/rails],
      "lib/fairlead/load_tool.rb" => %w[test/integration/command/bench_test.rb],
      "lib/fairlead/observe" => %w[test/integration/clients/access_log_test.rb test/integration/rack/app_error_test.rb],
      "lib/fairlead/options" => %w[test/integration/command],
      "lib/fairlead/process" => %w[test/integration/processes test/integration/supervision],
      "lib/fairlead/rack" => %w[test/integration/rack],
      "lib/action_cable" => %w[test/integration/rails/broadcasts_test.rb],
      "lib/fairlead/cable" => %w[test/integration/cable test/integration/rails/broadcasts_test.rb],
      "lib/fairlead/realtime/publish_socket.rb" => %w[test/integration/publish_socket],
      "lib/fairlead/realtime/pub_sub/membership.rb" => %w[test/integration/publish_socket],
      "lib/fairlead/realtime/pub_sub/running_server" => %w[test/integration/publish_socket],
      "lib/fairlead/realtime/pub_sub" => %w[test/integration/pub_sub test/integration/real_time/pub_sub],
      "lib/fairlead/realtime" => %w[test/integration/real_time],
      "lib/fairlead/server" => %w[test/integration/embedding],
      "lib/fairlead/tls" => %w[test/integration/tls],
      "lib/fairlead/service.rb" => %w[test/integration/embedding test/integration/command],
      "lib/rack" => %w[test/integration/embedding],
      "lib/rackup" => %w[test/integration/embedding],
      "crates/acme" => %w[test/integration/acme],
      "crates/shared-memory" => %w[test/integration/processes],
      "crates/supervisor/src/publishing" => %w[test/integration/publish_socket],
      "crates/supervisor" => %w[test/integration/supervision test/integration/processes],
      "crates/tls-record" => %w[test/integration/tls/moving_test.rb],
      "crates/engine/src/acme.rs" => %w[test/integration/acme],
      "crates/engine/src/cluster" => %w[test/integration/processes],
      "crates/engine/src/config/fair_by.rs" => %w[test/integration/scheduling],
      "crates/engine/src/config/https.rs" => %w[test/integration/proxies/https_test.rb],
      "crates/engine/src/config/log_format.rs" => %w[test/integration/clients/access_log_test.rb],
      "crates/engine/src/config/log_sample.rs" => %w[test/integration/clients/access_log_test.rb],
      "crates/engine/src/config/peers.rs" => %w[test/integration/proxies],
      "crates/engine/src/connection" => %w[test/integration/http],
      "crates/engine/src/exchange" => %w[test/integration/rack],
      "crates/engine/src/exchange/relay.rs" => %w[test/integration/hijack],
      "crates/engine/src/files" => %w[test/integration/files],
      "crates/engine/src/http" => %w[test/integration/http],
      "crates/engine/src/http2" => %w[test/integration/http2],
      "crates/engine/src/engine" => %w[test/integration/http],
      "crates/engine/src/engine/clients.rs" => %w[test/integration/real_time],
      "crates/engine/src/engine/drain.rs" => %w[test/integration/processes/drain_test.rb],
      "crates/engine/src/engine/life.rs" => %w[test/integration/embedding test/integration/processes/drain_test.rb],
      "crates/engine/src/engine/giving_way" => %w[test/integration/clients],
      "crates/engine/src/engine/native/file_sender.rs" => %w[test/integration/files],
      "crates/engine/src/engine/native/handshakes.rs" => %w[test/integration/tls],
      "crates/engine/src/engine/native/look_ups.rs" => %w[test/integration/files],
      "crates/engine/src/engine/http2.rs" => %w[test/integration/http2],
      "crates/engine/src/engine/migration" => %w[test/integration/processes],
      "crates/engine/src/engine/moves" => %w[test/integration/processes/handoff_test.rb],
      "crates/engine/src/engine/native/send_queue.rs" => %w[test/integration/clients/slow_reader_test.rb],
      "crates/engine/src/engine/uploads.rs" => %w[test/integration/clients],
      "crates/engine/src/engine/without_app" => %w[test/integration/files test/integration/http],
      "crates/engine/src/limits" => %w[test/integration/clients],
      "crates/engine/src/observe" => %w[test/integration/clients/access_log_test.rb],
      "crates/engine/src/home.rs" => %w[test/integration/processes/forked_by_the_app_test.rb],
      "crates/engine/src/pubsub" => %w[test/integration/real_time/pub_sub],
      "crates/engine/src/reactor" => %w[test/integration/http test/integration/processes],
      "crates/engine/src/realtime" => %w[test/integration/real_time],
      "crates/engine/src/scheduler" => %w[test/integration/scheduling],
      "crates/engine/src/spool" => %w[test/integration/clients],
      "crates/engine/src/tls" => %w[test/integration/tls],
      "crates/engine/src/stream" => %w[test/integration/proxies test/integration/http],
      "crates/engine/src/transport" => %w[test/integration/http test/integration/tls],
      "crates/engine/src/worker" => %w[test/integration/http test/integration/processes],
      "crates/load" => %w[test/integration/command/bench_test.rb test/integration/command/bench_tls_test.rb],
      "ext/load" => %w[test/integration/command/bench_test.rb],
      "crates/wire/src/conditions" => %w[test/integration/files/conditions_test.rb],
      "crates/wire/src/content_encoding" => %w[test/integration/files/compression_test.rb],
      "crates/wire/src/event_stream.rs" => %w[test/integration/real_time],
      "crates/wire/src/forwarded.rs" => %w[test/integration/proxies],
      "crates/wire/src/http1" => %w[test/integration/http],
      "crates/wire/src/http2" => %w[test/integration/http2],
      "crates/wire/src/path" => %w[test/integration/files],
      "crates/wire/src/pattern.rs" => %w[test/integration/real_time/pub_sub],
      "crates/wire/src/proxy" => %w[test/integration/proxies/proxy_protocol_test.rb],
      "crates/wire/src/ranges" => %w[test/integration/files/ranges_test.rb],
      "crates/wire/src/websocket" => %w[test/integration/real_time/websocket],
      "exe" => %w[test/integration/command],
      "ext/fairlead/src/fork.rs" => %w[test/integration/processes],
      "ext/fairlead/src/gvl" => %w[test/integration/scheduling],
      "ext/fairlead/src/native" => %w[test/integration/processes],
      "ext/fairlead/src/process_end.rs" => %w[test/integration/processes],
      "ext/fairlead/src/rack" => %w[test/integration/rack],
      "ext/fairlead/src/rack/hijack.rs" => %w[test/integration/hijack],
      "ext/fairlead/src/realtime" => %w[test/integration/real_time/push]
    }.freeze

    # The integration tests of a file without an entry.
    GENERAL = %w[test/integration/http test/integration/rack].freeze

    # Parts of `bin/test` that are never quick.
    SLOW = ["clippy", "rustdoc", "the model checker", "conformance", "browser", "gem"].freeze

    # Changed test files in these folders run as well, in the step of that name.
    TESTED = { "integration" => %w[test/integration test/conformance test/examples], "unit" => %w[test/unit] }.freeze

    COMMENTS = "comments "

    # +changed+: lines as described above.
    def initialize(changed, root: Dir.pwd)
      comments, code = changed.partition { |line| line.start_with?(COMMENTS) }
      @changed = code
      @all = code + comments.map { |line| line.delete_prefix(COMMENTS) }
      @root = root
    end

    # Name of a step => its arguments.
    def steps
      {
        "format" => (["all"] if @all.any? { |path| path.end_with?(".rs") }),
        "style" => style,
        "shell" => shell,
        "types" => (["all"] if changed_in?("sig")),
        **rust,
        "unit" => unit,
        "docs" => (["test/docs"] if @all.any?),
        "tools" => (["test/tools"] if changed_in?(*TOOLS)),
        "integration" => integration
      }.select { |_, words| words&.any? }
    end

    # Steps of the crates, each with cargo's options.
    def rust
      crates = CRATES.keys
      unless @changed.intersect?(WORKSPACE)
        crates = crates.select { |name| changed_in?(*[name, *TESTED_BY[name]].map { |crate| "crates/#{crate}" }) }
      end
      crates.map { |name| tests_of(name) }.reduce({}, :merge)
    end

    def unit
      files = @changed.filter_map { |path| path[%r{\Alib/fairlead/(.+)\.rb\z}, 1] }.flat_map { |name| unit_tests(name) }
      files += UNIT if changed_in?("lib", "sig", "ext")
      (files + own("unit")).uniq.sort
    end

    # Test files, without duplicates.
    def integration
      chosen = TESTS.select { |path, _| changed_in?(path) }.values.flatten
      chosen.push(*GENERAL) if chosen.empty? && changed_in?("lib", "exe", "ext", "crates")
      (chosen.map { |path| smoke(path) } + own("integration")).uniq.sort
    end

    # A description of the omitted tests.
    def left_out
      %w[unit integration].map do |kind|
        all = Dir.glob("test/#{kind}/**/*_test.rb", base: @root)
        "#{(all - public_send(kind)).size} of #{all.size} files in test/#{kind}"
      end.push(*SLOW)
    end

    private

    def changed_in?(*paths)
      @changed.any? { |changed| paths.any? { |path| changed == path || changed.start_with?("#{path}/", "#{path}.rb", "#{path}.rs") } }
    end

    # Changed files that still exist.
    def present = @changed.select { |path| File.file?(File.join(@root, path)) }

    # Changed test files of that step.
    def own(step)
      present.select { |path| path.end_with?("_test.rb") && TESTED.fetch(step).any? { |folder| path.start_with?("#{folder}/") } }
    end

    def style
      return ["."] if @changed.include?(".rubocop.yml")

      present.select { |path| path.match?(/\.(?:rb|ru|gemspec)\z/) || first_line(path)&.match?(/\A#!.*ruby/n) }
    end

    def shell = present.select { |path| path.end_with?(".bash") || first_line(path)&.match?(/\A#!.*bash/n) }

    # Its bytes: the file may hold no text.
    def first_line(path) = File.open(File.join(@root, path), "rb", &:gets)

    # The tests of the folder, unless the file has its own.
    def unit_tests(name)
      own = "test/unit/#{name}_test.rb"
      return [own] if File.file?(File.join(@root, own))

      folder = File.dirname(name)
      folder == "." ? Dir.glob("test/unit/#{name}{,/*}_test.rb", base: @root) : Dir.glob("test/unit/#{folder}{_test.rb,/*_test.rb}", base: @root)
    end

    # The unit tests of a crate, and the tests in its folder with the name of a changed file.
    def tests_of(crate)
      steps = { "rust-#{crate}" => ["--package", "fairlead-#{crate}", CRATES.fetch(crate)] }
      targets = @changed.filter_map { |path| path[%r{\Acrates/#{crate}/(?:src|tests)/(\w+)}, 1] }.uniq
      targets.select { |name| target?(crate, name) }.each do |name|
        steps["rust-#{crate}-#{name}"] = ["--package", "fairlead-#{crate}", "--test", name]
      end
      steps
    end

    # The model checker has a step of its own.
    def target?(crate, name)
      name != "schedule" && ["#{name}.rs", "#{name}/main.rs"].any? { |path| File.file?(File.join(@root, "crates/#{crate}/tests", path)) }
    end

    def smoke(path)
      return path if path.end_with?(".rb")

      (PARTS + SMOKE).find { |file| file.start_with?("#{path}/") || path.start_with?("#{File.dirname(file)}/") }
    end
  end
end

if $PROGRAM_NAME == __FILE__
  if ARGV == ["smoke"]
    puts Fairlead::QuickChoice::SMOKE
  else
    choice = Fairlead::QuickChoice.new($stdin.readlines(chomp: true))
    choice.steps.each { |step, words| puts [step, *words].join(" ") }
    puts "out #{choice.left_out.join(", ")}"
  end
end
