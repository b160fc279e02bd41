# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/path_calls"

# Serving slows down the application's files no more than loading the library does: no path of a required file is normalised,
# and code for special servers is not loaded.
class LoadedApplicationTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  def test_a_server_answers_without_what_its_application_does_not_need
    server = serve(<<~'RUBY')
      run ->(_env) { [200, {}, [$LOADED_FEATURES.grep(%r{/(?:rack/builder|rack/server|rack/utils|uri|fileutils)\.rb\z}).join("\n")]] }
    RUBY
    loaded = get(server).body.lines(chomp: true)

    assert_equal(["builder.rb"], loaded.map { |path| File.basename(path) })
  end

  # The same application, with one file and with fifty.
  def test_a_server_normalises_no_path_for_a_file_of_the_application
    one, fifty = [1, 50].map { |number| calls_of_a_server(number) }

    assert_operator one, :>, 0
    assert_equal one, fifty
  end

  private

  def calls_of_a_server(number)
    parts = Array.new(number) { |index| ["parts/part#{index}.rb", "module Part#{index}; end\n"] }.to_h
    server = serve(<<~RUBY, files: { **parts, "counter.rb" => Fairlead::Test::PathCalls::COUNTER }, environment: { "RUBYOPT" => "-r./counter.rb" })
      Dir[File.join(__dir__, "parts/*.rb")].sort.each { |path| require path }
      run ->(_env) { [200, {}, [PathCalls::SEEN.size.to_s]] }
    RUBY
    Integer(get(server).body)
  end
end
