# frozen_string_literal: true

require "test_helper"
require "net/http"

# Every example starts with the documented command, and responds.
class ExamplesTest < Minitest::Test
  include Fairlead::Test::Servers

  Dir.glob("#{ROOT}/examples/*/config.ru").sort.each do |rackup|
    folder = File.dirname(rackup)
    define_method("test_#{File.basename(folder).tr("-", "_")}_answers") do
      server = serve(nil, "--dir", folder)
      response = Net::HTTP.get_response(URI(server.url))

      assert_includes 200..399, Integer(response.code), response.body
      assert_predicate server.stop, :success?
    end
  end

  def test_every_example_says_what_it_shows
    silent = Dir.glob("#{ROOT}/examples/*/").reject { |folder| File.file?(File.join(folder, "README.md")) }

    assert_empty silent
  end
end
