# frozen_string_literal: true

namespace :conformance do
  desc "Try all of Autobahn's cases, for a quarter of an hour, and write their table in docs/conformance.md"
  task websocket: :compile do
    sh({ "AUTOBAHN" => "all", "UPDATE_DOCS" => "1" }, "bin/support/ruby-tests", "test/conformance/websocket_test.rb")
  end
end
