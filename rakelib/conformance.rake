# frozen_string_literal: true

namespace :conformance do
  desc "Try all of Autobahn's cases, for a quarter of an hour, and write their table in docs/conformance.md"
  task websocket: :compile do
    sh({ "AUTOBAHN" => "all", "UPDATE_DOCS" => "1" }, "bin/support/ruby-tests", "test/conformance/websocket_test.rb")
  end

  {
    ranges: "Compare the responses to range requests with nginx's",
    traversal: "Try wfuzz's lists of paths that lead out of a folder",
    redbot: "Have REDbot check files and compressed responses"
  }.each do |name, description|
    desc description
    task(name => :compile) { sh "bin/support/ruby-tests", "test/conformance/files/#{name}_test.rb" }
  end

  desc "Have sslscan and testssl.sh check the TLS versions and ciphers, for a minute"
  task tls: :compile do
    sh({ "TESTSSL" => "1" }, "bin/support/ruby-tests", "test/conformance/tls/profile_test.rb")
  end

  desc "Compare TLS with a bare rustls server, by scripts of tlsfuzzer, for a few minutes"
  task(tlsfuzzer: :compile) { sh "bin/support/tlsfuzzer" }
end
