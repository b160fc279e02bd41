# frozen_string_literal: true

require "test_helper"
require "open3"
require "rack"
require "rbconfig"

# Rack's default server: Puma if it can be loaded, otherwise Fairlead.
class DefaultHandlerTest < Minitest::Test
  include Fairlead::Test::Folders

  RACK2 = Rack.release.start_with?("2.")
  HANDLERS = RACK2 ? "Rack" : "Rackup"

  WITHOUT_PUMA = { "#{HANDLERS.downcase}/handler/puma.rb" => "raise LoadError", "rack/handler/puma.rb" => "raise LoadError" }.freeze
  PUMA = "module #{HANDLERS}::Handler; module Puma; end; register(:puma, Puma); end".freeze
  WITH_PUMA = { "#{HANDLERS.downcase}/handler/puma.rb" => PUMA }.freeze

  # Rack 2 loads a handler at its first use.
  LATE = {
    "rack_loads_its_handlers_later" => "require 'rack'; require 'fairlead'",
    "the_handlers_are_required_later" => "require 'rack'; require 'fairlead'; require 'rack/handler'"
  }.freeze

  ORDERS = {
    "the_handlers_are_loaded" => "require 'rack'; require '#{HANDLERS.downcase}/handler'; require 'fairlead'",
    "its_own_handler_is_loaded" => "require '#{HANDLERS.downcase}/handler/fairlead'",
    **(RACK2 ? LATE : {})
  }.freeze

  ORDERS.each do |name, loading|
    define_method(:"test_without_puma_it_is_the_default_where_#{name}") { assert_equal "Fairlead", default(loading, WITHOUT_PUMA) }
    define_method(:"test_puma_stays_the_default_where_#{name}") { assert_equal "Puma", default(loading, WITH_PUMA) }
  end

  def test_who_is_named_wins
    loading = ORDERS.values.first

    assert_equal "Fairlead", default(loading, WITH_PUMA, "RACKUP_HANDLER" => "fairlead")
    assert_equal "Puma", default(loading, WITH_PUMA, "RACKUP_HANDLER" => "puma")
    assert_equal "Other", default(loading, OTHER, "RACK_HANDLER" => "other")
  end

  OTHER = WITHOUT_PUMA.merge("#{HANDLERS.downcase}/handler/other.rb" => PUMA.gsub("Puma", "Other").sub(":puma", ":other")).freeze

  def test_nothing_is_loaded_for_who_does_not_use_rack
    assert_equal "nil", run_script("require 'fairlead'; print [defined?(Rack), defined?(Rackup)].compact.first.inspect")
  end

  private

  def default(loading, files, environment = {})
    run_script("#{loading}; print #{HANDLERS}::Handler.default.name[/\\w+\\z/]", files, environment)
  end

  # Returns the script's standard output.
  def run_script(script, files = {}, environment = {})
    in_folder(files) do |folder|
      cleared = { "RUBYOPT" => nil, "RUBYLIB" => nil, "RACK_HANDLER" => nil, "RACKUP_HANDLER" => nil }
      output, errors, = Open3.capture3(cleared.merge(environment), RbConfig.ruby, "-w", "-I", folder, "-I", File.join(ROOT, "lib"), "-e", script)
      assert_empty errors.lines.grep(/fairlead/)
      output
    end
  end
end
