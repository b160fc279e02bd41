# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "support/needed_gems"

# `Capybara.server = :fairlead`, in either loading order, and without a chosen server.
class CapybaraTest < Minitest::Test
  include Fairlead::Test::Folders
  include Fairlead::Test::NeededGems

  # A broken Puma, and one that can be loaded.
  WITHOUT_PUMA = { "rack/handler/puma.rb" => "raise LoadError, 'no such file -- puma'" }.freeze
  WITH_PUMA = { "rack/handler/puma.rb" => "# it is there" }.freeze

  # Capybara considers an application ready when /__identify__ returns its object id.
  ANSWERS = <<~'RUBY'
    app = ->(env) { [200, { "content-type" => "text/plain" }, ["#{env["SERVER_SOFTWARE"]} from #{Process.pid == $$}"]] }
    server = Capybara::Server.new(app, host: "127.0.0.1").boot
    $stdout.syswrite("#{Net::HTTP.get(URI("http://127.0.0.1:#{server.port}/"))}\n")
    exit!(0)
  RUBY

  def setup = needs_gems("capybara")

  {
    "the_bundle_has_it_and_it_comes_later" => 'gem "capybara"; require "fairlead"; require "capybara"',
    "the_bundle_has_it_and_it_is_only_named" => 'gem "capybara"; require "fairlead"; Capybara',
    "it_is_there_before" => 'require "capybara"; require "fairlead"',
    "it_is_asked_for" => 'require "fairlead/capybara"'
  }.each do |name, loading|
    define_method(:"test_it_is_registered_and_serves_where_#{name}") do
      output = run_script("#{loading}\nCapybara.server = :fairlead, { Silent: true }\n#{ANSWERS}")

      assert_equal "fairlead #{Fairlead::VERSION} from true\n", output
    end
  end

  def test_it_is_what_runs_by_itself_where_there_is_no_puma
    output = run_script("require 'fairlead/capybara'\n#{ANSWERS}", files: WITHOUT_PUMA)

    assert_equal "fairlead #{Fairlead::VERSION} from true\n", output
  end

  def test_a_server_of_that_name_that_is_registered_already_stays
    output = run_script(<<~RUBY)
      require "capybara"
      Capybara.register_server(:fairlead) { "mine" }
      require "fairlead"
      puts Capybara.servers[:fairlead].call
    RUBY

    assert_equal "mine\n", output
  end

  def test_nobody_who_has_no_capybara_sees_a_constant_of_that_name
    assert_equal "nil\n", run_script("require 'fairlead'\np defined?(Capybara)")
  end

  def test_system_tests_of_rails_take_it_where_there_is_no_puma_and_nobody_has_chosen
    assert_equal ["fairlead"], system_test_case(WITHOUT_PUMA)
    assert_equal ["puma"], system_test_case(WITH_PUMA)
    assert_equal ["chosen"], system_test_case(WITHOUT_PUMA, "Capybara.server = :chosen")
  end

  private

  # Returns the name of the server that Rails has set. Rails wraps the chosen server and its options in a block.
  def system_test_case(files, choice = "")
    run_script(<<~RUBY, files: files).lines(chomp: true)
      require "active_support"
      require "action_dispatch"
      require "fairlead"
      require "capybara/dsl"
      names = %i[puma fairlead chosen]
      names.each { |name| Capybara.servers.send(:register, name, ->(*, **) { puts name }) }
      #{choice}
      require "rails"
      require "action_dispatch/system_test_case"
      Capybara.server.call(nil, 0, nil)
    RUBY
  end

  # Returns everything that the script prints.
  def run_script(script, files: {})
    in_folder(files) do |folder|
      command = [RbConfig.ruby, "-I", folder, "-I", File.join(ROOT, "lib"), "-r", "net/http", "-e", script]
      Open3.capture2e({ "RUBYOPT" => nil, "RUBYLIB" => nil }, *command).first
    end
  end
end
