# frozen_string_literal: true

require "test_helper"

class ConfigurationMigrationTest < Minitest::Test
  HEAD = "# Made from config/puma.rb by `fairlead migrate`.\n\n"
  DAEMON = "# daemonize has no effect: Fairlead stays in the foreground; let systemd or another supervisor of services run it.\n"

  def test_calls_get_our_names_and_everything_else_stays
    theirs = <<~'RUBY'
      # Options of  Puma
      if ENV["X"] # preload_app!
        preload_app!
        pidfile("a.pid") unless File.exist?("pidfile")
      end
      pidfile = "é"; pidfile pidfile
      "#{persistent_timeout 20}"
      on_worker_boot(&BLOCK)
      on_booted do
        puts "daemonize"
      end
    RUBY

    assert_equal <<~'RUBY', migrate(theirs)
      # Options of  Puma
      if ENV["X"] # preload_app!
        preload
        pid_file("a.pid") unless File.exist?("pidfile")
      end
      pidfile = "é"; pid_file pidfile
      "#{keep_alive_timeout 20}"
      before_worker_boot(&BLOCK)
      after_booted do
        puts "daemonize"
      end
    RUBY
  end

  def test_what_has_no_effect_becomes_a_comment_that_says_why
    assert_equal "#{DAEMON}# daemonize true # old\nworkers 2\n", migrate("daemonize true # old\nworkers 2")
    assert_equal "#{DAEMON}# daemonize if ENV['X'] &&\n#   ENV['Y']\n", migrate("daemonize if ENV['X'] &&\n  ENV['Y']")
    assert_equal "if ENV['X']\n  #{DAEMON}  # daemonize(\n  #   true\n  # )\nend\n", migrate("if ENV['X']\n  daemonize(\n    true\n  )\nend")
    assert_match(/\A# nakayoshi_fork has .*\n# nakayoshi_fork do\n#   1\n#\n# end\n\z/, migrate("nakayoshi_fork do\n  1\n\nend"))
  end

  def test_what_shares_its_line_only_gets_the_comment
    assert_equal "#{DAEMON}workers 2; daemonize\n", migrate("workers 2; daemonize")
    assert_equal "#{DAEMON}ENV['X'] && daemonize\n", migrate("ENV['X'] && daemonize")
    assert_equal "#{DAEMON}single { daemonize }\n", migrate("single { daemonize }")
  end

  def test_quiet_is_turned_around
    assert_equal "log_requests false\nlog_requests false\nlog_requests true\nlog_requests !(ENV['Q'] == \"é\")\n",
                 migrate("quiet\nquiet(true)\nquiet false\nquiet ENV['Q'] == \"é\"").sub("(false)", " false")
  end

  def test_constants_and_files_of_puma_are_not_needed
    assert_equal "rackup \"config.ru\"\n", migrate("rackup DefaultRackup")
    assert_equal "# Fairlead needs none of Puma.\n# require 'puma/daemon'\nrequire 'puma_worker_killer'\n",
                 migrate("require 'puma/daemon'\nrequire 'puma_worker_killer'")
  end

  def test_what_differs_is_noted
    assert_equal "# worker_shutdown_timeout also applies without workers, where Puma waits for ever.\nshutdown_timeout 5\n",
                 migrate("worker_shutdown_timeout 5")
    assert_equal "if ENV['X']\n  # load reads the other file at once, and as it is.\n  load 'other.rb'\nend\n",
                 migrate("if ENV['X']\n  load 'other.rb'\nend")
  end

  def test_tls_stays_as_it_is
    assert_equal "ssl_bind '0.0.0.0', 443, cert: 'c', key: 'k'\n", migrate("ssl_bind '0.0.0.0', 443, cert: 'c', key: 'k'")
  end

  def test_other_objects_have_methods_of_their_own
    text = "class Other\n  def run = daemonize\n  quiet\nend\nOther.new.daemonize\n"

    assert_equal text, migrate(text)
  end

  def test_magic_comments_stay_first
    assert_equal "#!/usr/bin/env puma\n# frozen_string_literal: true\n#{HEAD}workers 1\n",
                 Fairlead::Configuration::Migration.new("#!/usr/bin/env puma\n# frozen_string_literal: true\nworkers 1", "config/puma.rb").to_s
  end

  def test_what_is_not_ruby_is_refused
    error = assert_raises(Fairlead::ConfigurationError) { migrate("if then(") }

    assert_match(%r{\Aconfig/puma\.rb: cannot be rewritten: }, error.message)
  end

  def test_calls_of_unknown_methods_are_warned_of_where_it_is_known_what_runs_them
    text = "x 1\nputs 1 if y\ndef own(value) = other(value)\nown 1\n-> { later }\non_worker_boot { later }\nPool.new { later }\n"
    warnings = Fairlead::Configuration::Migration.new(text, "config/puma.rb").warnings

    assert_equal %w[config/puma.rb:1 config/puma.rb:2], warnings.map { |warning| warning[/\A\S+(?=: [xy] is unknown)/] }
  end

  def test_a_plugin_may_have_methods_of_its_own
    { "plugin :tmp_restart\nx 1" => 1, "plugin :queue\nx 1" => 0 }.each do |text, count|
      assert_equal count, Fairlead::Configuration::Migration.new(text, "config/puma.rb").warnings.size
    end
  end

  private

  # Removes the first line, which names the source.
  def migrate(text)
    result = Fairlead::Configuration::Migration.new(text, "config/puma.rb").to_s
    assert result.start_with?(HEAD), result
    result.delete_prefix(HEAD)
  end
end
