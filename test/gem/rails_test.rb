# frozen_string_literal: true

require "test_helper"
require "support/installed_gem"

# The installed gem in a Rails application, in every way of starting it.
class GemInRailsTest < Minitest::Test
  include Fairlead::Test::InstalledGem

  RAILS = { "rails_server" => %w[rails server], "rails_server_by_name" => %w[rails server -u fairlead], "bin_rails" => %w[bin/rails server],
            "bundle_exec_rails" => %w[bundle exec rails server -u fairlead], "bundle_exec_bin_rails" => %w[bundle exec bin/rails server] }.freeze

  # The first line of bin/rails counts where that is the program that runs.
  DIRECT = %w[bin_rails bundle_exec_bin_rails].freeze

  RAILS.to_a.product(SHEBANGS.slice("of_env", "of_this_ruby").to_a).each do |(way, words), (name, shebang)|
    next unless name == "of_env" || DIRECT.include?(way)

    define_method(:"test_#{way}_with_the_first_line_#{name}_restarts") do
      missing = Fairlead::Test::RailsApplication.missing and skip(missing)
      server = own(InstalledRails.new(*words, shebang: shebang))
      run!("bundle", "lock", "--local", chdir: server.directory)
      server.start(seconds: 60)

      assert_each_restart(server, "/version", ("bundle" if way == "bin_rails"))
    end
  end
end
