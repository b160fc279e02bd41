# frozen_string_literal: true

namespace :conformance do
  desc "Try all of Autobahn's cases, for a quarter of an hour, and write their table in docs/conformance.md"
  task websocket: :compile do
    sh({ "AUTOBAHN" => "all", "UPDATE_DOCS" => "1" }, "bin/support/ruby-tests", "test/conformance/websocket_test.rb")
  end

  {
    ranges: "Compare the answers to requests for ranges with nginx's",
    traversal: "Try wfuzz's lists of paths that lead out of a folder",
    redbot: "Have REDbot look at files and at compressed answers"
  }.each do |name, description|
    desc description
    task(name => :compile) { sh "bin/support/ruby-tests", "test/conformance/files/#{name}_test.rb" }
  end

  desc "Have sslscan and testssl.sh look at what is offered over TLS, for a minute"
  task tls: :compile do
    sh({ "TESTSSL" => "1" }, "bin/support/ruby-tests", "test/conformance/tls/profile_test.rb")
  end

  desc "Compare TLS with a bare rustls server, by scripts of tlsfuzzer, for a few minutes"
  task(tlsfuzzer: :compile) { sh "bin/support/tlsfuzzer" }
end
