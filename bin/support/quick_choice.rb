#!/usr/bin/env ruby
# frozen_string_literal: true

# Reads paths of changed files, one a line, and prints the steps of `bin/test --quick`: a line for each, its name and what it
# works on. The last one, `out`, is for the reader: what was left out.

module Fairlead
  # What `bin/test --quick` runs after a change to some files. Knows paths, runs nothing. The unit tests, the tests of the
  # documents and the smoke tests always run; so do test files that have changed. The rest follows from TESTS and CRATES.
  class QuickChoice
    # The crates, each with those that have to be tested when it changes.
    CRATES = {
      "wire" => %w[wire engine], "engine" => %w[engine], "load" => %w[load], "acme" => %w[acme], "supervisor" => %w[supervisor],
      "shared-memory" => %w[supervisor]
    }.freeze

    # What can change every crate.
    WORKSPACE = %w[Cargo.toml Cargo.lock].freeze

    # A test file that is quick, and goes through much, of each folder of integration tests.
    SMOKE = %w[
      test/integration/acme/http_challenge_test.rb
      test/integration/applications/chat_test.rb
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
      test/integration/rack/streaming_body_test.rb
      test/integration/rails/default_server_test.rb
      test/integration/real_time/push/client_test.rb
      test/integration/scheduling/threads_test.rb
      test/integration/supervision/start_folder_test.rb
      test/integration/tls/client_certificates_test.rb
    ].freeze

    # The integration tests of a file or a folder; `options` is `options.rb` too. Where several entries hold a file, all of
    # them count.
    TESTS = {
      "lib/fairlead/acme" => %w[test/integration/acme],
      "lib/fairlead/capybara.rb" => %w[test/integration/embedding/capybara_test.rb],
      "lib/fairlead/cli.rb" => %w[test/integration/command],
      "lib/fairlead/compat/puma" => %w[test/integration/control/plugins_test.rb],
      "lib/fairlead/plugins.rb" => %w[test/integration/control/plugins_test.rb],
      "lib/fairlead/compat" => %w[test/integration/compat test/integration/applications],
      "lib/fairlead/configuration" => %w[test/integration/command],
      "lib/fairlead/control" => %w[test/integration/control],
      "lib/fairlead/engine.rb" => %w[test/integration/embedding test/integration/scheduling],
      "lib/fairlead/listening" => %w[test/integration/http/listeners_test.rb test/integration/http/peer_address_test.rb],
      "lib/fairlead/integrations" => %w[test/integration/embedding test/integration/rails],
      "lib/fairlead/load_tool.rb" => %w[test/integration/command/bench_test.rb],
      "lib/fairlead/observe" => %w[test/integration/clients/access_log_test.rb test/integration/rack/app_error_test.rb],
      "lib/fairlead/options" => %w[test/integration/command],
      "lib/fairlead/process" => %w[test/integration/processes test/integration/supervision],
      "lib/fairlead/rack" => %w[test/integration/rack],
      "lib/fairlead/realtime/pub_sub" => %w[test/integration/pub_sub test/integration/real_time/pub_sub],
      "lib/fairlead/realtime" => %w[test/integration/real_time],
      "lib/fairlead/server.rb" => %w[test/integration/embedding],
      "lib/fairlead/tls" => %w[test/integration/tls],
      "lib/fairlead/service.rb" => %w[test/integration/embedding test/integration/command],
      "crates/acme" => %w[test/integration/acme],
      "crates/supervisor" => %w[test/integration/supervision test/integration/processes],
      "crates/engine/src/acme.rs" => %w[test/integration/acme],
      "crates/engine/src/cluster" => %w[test/integration/processes],
      "crates/engine/src/connection" => %w[test/integration/http],
      "crates/engine/src/exchange" => %w[test/integration/rack],
      "crates/engine/src/exchange/relay.rs" => %w[test/integration/hijack],
      "crates/engine/src/files" => %w[test/integration/files],
      "crates/engine/src/http" => %w[test/integration/http],
      "crates/engine/src/http2" => %w[test/integration/http2],
      "crates/engine/src/engine/clients.rs" => %w[test/integration/real_time],
      "crates/engine/src/engine/giving_way" => %w[test/integration/clients],
      "crates/engine/src/engine/native/file_sender.rs" => %w[test/integration/files],
      "crates/engine/src/engine/native/handshakes.rs" => %w[test/integration/tls],
      "crates/engine/src/engine/native/look_ups.rs" => %w[test/integration/files],
      "crates/engine/src/engine/sessions.rs" => %w[test/integration/http2],
      "crates/engine/src/engine/sharing" => %w[test/integration/processes],
      "crates/engine/src/engine/uploads.rs" => %w[test/integration/clients],
      "crates/engine/src/engine/without_app" => %w[test/integration/files test/integration/http],
      "crates/engine/src/limits" => %w[test/integration/clients],
      "crates/engine/src/observe" => %w[test/integration/clients/access_log_test.rb],
      "crates/engine/src/pubsub" => %w[test/integration/real_time/pub_sub],
      "crates/engine/src/realtime" => %w[test/integration/real_time],
      "crates/engine/src/scheduler" => %w[test/integration/scheduling],
      "crates/engine/src/spool" => %w[test/integration/clients],
      "crates/engine/src/tls" => %w[test/integration/tls],
      "crates/engine/src/stream" => %w[test/integration/proxies test/integration/http],
      "crates/load" => %w[test/integration/command/bench_test.rb test/integration/command/bench_tls_test.rb],
      "crates/wire/src/http1" => %w[test/integration/http],
      "crates/wire/src/http2" => %w[test/integration/http2],
      "crates/wire/src/websocket" => %w[test/integration/real_time/websocket],
      "ext/fairlead/src/rack" => %w[test/integration/rack],
      "ext/fairlead/src/rack/hijack.rs" => %w[test/integration/hijack],
      "ext/fairlead/src/realtime" => %w[test/integration/real_time/push]
    }.freeze

    # Parts of `bin/test` that are never quick.
    SLOW = ["clippy", "rustdoc", "the model checker", "conformance", "examples", "browser", "gem"].freeze

    # Changed test files in these folders run as well.
    TESTED = %w[test/integration test/conformance test/examples].freeze

    def initialize(changed, root: Dir.pwd)
      @changed = changed
      @root = root
    end

    # Name of a step => what it works on.
    def steps
      {
        "format" => (["all"] if crates.any? || changed_in?("ext")),
        "style" => style,
        "shell" => (["all"] if changed_in?("bin", ".ci")),
        "crates" => crates,
        "unit" => ["test/unit"],
        "docs" => ["test/docs"],
        "integration" => integration
      }.select { |_, words| words&.any? }
    end

    def crates
      return CRATES.values.flatten.uniq if @changed.intersect?(WORKSPACE)

      CRATES.select { |name, _| changed_in?("crates/#{name}") }.values.flatten.uniq
    end

    # Test files, each once.
    def integration
      chosen = TESTS.select { |path, _| changed_in?(path) }.values.flatten
      own = present.select { |path| path.end_with?("_test.rb") && TESTED.any? { |folder| path.start_with?("#{folder}/") } }
      (chosen.flat_map { |path| files_in(path) } + own + SMOKE).uniq.sort
    end

    # In words.
    def left_out
      all = files_in("test/integration")
      crates = CRATES.values.flatten.uniq - self.crates
      ["#{(all - integration).size} of #{all.size} files in test/integration", *crates.map { |name| "the crate #{name}" }, *SLOW]
    end

    private

    def changed_in?(*paths)
      @changed.any? { |changed| paths.any? { |path| changed == path || changed.start_with?("#{path}/", "#{path}.rb") } }
    end

    # What has changed and still exists.
    def present = @changed.select { |path| File.file?(File.join(@root, path)) }

    def style
      return ["."] if @changed.include?(".rubocop.yml")

      present.select { |path| path.match?(/\.(?:rb|ru|gemspec)\z/) || File.open(File.join(@root, path), &:gets)&.match?(/\A#!.*ruby/n) }
    end

    def files_in(path)
      path.end_with?(".rb") ? [path] : Dir.glob("#{path}/**/*_test.rb", base: @root)
    end
  end
end

if $PROGRAM_NAME == __FILE__
  choice = Fairlead::QuickChoice.new($stdin.readlines(chomp: true))
  choice.steps.each { |step, words| puts [step, *words].join(" ") }
  puts "out #{choice.left_out.join(", ")}"
end
