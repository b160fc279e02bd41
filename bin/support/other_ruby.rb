#!/usr/bin/env ruby
# frozen_string_literal: true

# Prints the files and folders of tests that `bin/test --ruby` runs beside the unit tests.

module Fairlead
  # The tests whose result another Ruby, another Rack or another Rails can change, with the reason for each. Every
  # folder of integration tests is in one of the two lists; single files of an omitted folder may be chosen.
  module OtherRuby
    CHOSEN = {
      "test/integration/applications" => "applications in Ruby, with handlers and timers",
      "test/integration/cable/connections_test.rb" => "another Rails",
      "test/integration/cable/rails_test.rb" => "another Rails",
      "test/integration/cable/signed_streams_test.rb" => "another Rails",
      "test/integration/cable/streams_test.rb" => "another Rails",
      "test/integration/cable/turns_test.rb" => "another Rails",
      "test/integration/cable/restarts/rejections_test.rb" => "another Rails",
      "test/integration/cable/extended/history_test.rb" => "another Rails",
      "test/integration/cable/extended/restoration_test.rb" => "another Rails",
      "test/integration/compat" => "interfaces of other servers, which are written in Ruby",
      "test/integration/embedding" => "Rackup, Rails, Capybara and Sinatra start the server",
      "test/integration/hijack" => "Rack's hijacking, Ruby's sockets and Action Cable",
      "test/integration/rack" => "the env, bodies, exceptions, throws and killed threads",
      "test/integration/rails/application_test.rb" => "another Rails",
      "test/integration/rails/default_server_test.rb" => "another Rails",
      "test/integration/rails/template_streams_test.rb" => "another Rails",
      "test/integration/rails/tls_test.rb" => "another Rails",
      "test/integration/real_time/restarts/handover_test.rb" => "the env of Rack, and killed threads",
      "test/integration/real_time/push" => "callbacks, exceptions in them, and the collector of garbage",
      "test/integration/real_time/sse" => "streaming bodies, which only Rack 3 has",
      "test/integration/scheduling/interrupted_test.rb" => "interrupts of threads",
      "test/integration/scheduling/kept_lock_test.rb" => "the GVL",
      "test/integration/scheduling/request_timeout_test.rb" => "exceptions in a thread of the application",
      "test/integration/scheduling/threads_test.rb" => "threads",
      "test/integration/scheduling/time_slices_test.rb" => "time slices of threads",
      "test/integration/command/mistakes_test.rb" => "messages of Ruby's exceptions",
      "test/integration/command/puma_file_test.rb" => "Puma's file runs as Ruby",
      "test/integration/control/plugins_test.rb" => "plugins for Puma",
      "test/integration/files/frameworks_test.rb" => "Rails and Sinatra serve files",
      "test/integration/files/sendfile_test.rb" => "Rack::Sendfile and bodies with a path",
      "test/integration/http2/env_test.rb" => "the env of Rack",
      "test/integration/http2/responses_test.rb" => "headers with several values in Rack 2 and 3",
      "test/integration/processes/early_signals_test.rb" => "signals while Ruby starts",
      "test/integration/processes/forced_shutdown_test.rb" => "exceptions that end threads",
      "test/integration/processes/forked_by_the_app_test.rb" => "fork",
      "test/integration/processes/refork_test.rb" => "fork of a worker with threads",
      "test/integration/processes/workers_test.rb" => "fork",
      "test/integration/pub_sub/redis_test.rb" => "the connection to Redis, which is written in Ruby",
      "test/integration/real_time/pub_sub/timers_test.rb" => "timers, which are written in Ruby",
      "test/integration/real_time/websocket/forked_test.rb" => "fork",
      "test/integration/supervision/given_application_test.rb" => "an application that was made before the server",
      "test/integration/supervision/signals_test.rb" => "signals",
      "test/integration/tls/embedding_test.rb" => "contexts of Ruby's OpenSSL",
      "test/conformance/puma_test.rb" => "another Puma answers otherwise",
      "test/examples" => "applications in Ruby"
    }.freeze

    # Omitted folders, except for the files above.
    LEFT_OUT = {
      "test/integration/cable" => "other tests of Action Cable depend on the engine, and on brokers",
      "test/integration/rails" => "broadcasts of other processes depend on the publish socket",
      "test/integration/acme" => "a native program orders certificates; unit tests cover the rest",
      "test/integration/clients" => "the engine's limits",
      "test/integration/command" => "options and the load tool",
      "test/integration/control" => "the supervisor's control server",
      "test/integration/files" => "the engine serves files",
      "test/integration/http" => "the engine parses and refuses",
      "test/integration/http2" => "the engine frames",
      "test/integration/processes" => "the supervisor's restarts",
      "test/integration/proxies" => "the engine reads headers of proxies",
      "test/integration/pub_sub" => "messages between processes",
      "test/integration/publish_socket" => "the supervisor has the socket",
      "test/integration/real_time" => "frames and channels of the engine",
      "test/integration/scheduling" => "the engine's order of requests",
      "test/integration/supervision" => "the supervisor is a native program",
      "test/integration/tls" => "the engine's TLS",
      "test/conformance" => "bytes that the engine reads and writes",
      "test/browser" => "bytes that the engine reads and writes"
    }.freeze
  end
end

puts Fairlead::OtherRuby::CHOSEN.keys if $PROGRAM_NAME == __FILE__
