# frozen_string_literal: true

require "test_helper"

class ConfigurationFlagsTest < Minitest::Test
  def test_the_argument_is_the_rackup_file
    flags = parse("-w", "2", "app.ru", "-q")

    assert_equal "app.ru", flags[:rackup]
    assert_equal [2, true], [flags[:workers], flags[:quiet]]
  end

  def test_a_flag_may_be_joined_with_its_value
    assert_equal [1, 5, 3], parse("-t1:5", "--workers=3").settings.values.map(&:value)
  end

  def test_a_yes_can_be_taken_back
    assert_equal false, parse("--no-preload")[:preload]
    assert_equal false, parse("--waiting-room", "--no-waiting-room")[:waiting_room]
  end

  def test_a_flag_may_be_spelt_as_another_server_does
    [%w[-www .], %w[-www=.], %w[-q -www . app.ru]].each { |arguments| assert_equal ".", parse(*arguments)[:public_dir], arguments }
    assert_equal ["--public: missing argument"], parse("-www").problems.map(&:to_s)
    assert_equal "-www", parse("--", "-www")[:rackup]
  end

  def test_no_configuration_file_can_be_asked_for
    assert_equal ["-"], parse("--no-config")[:config]
    assert_equal ["-"], parse("-C", "-")[:config]
  end

  def test_what_cannot_be_read_is_told_all_at_once
    assert_equal ["--wrokers: unknown option; did you mean --workers?", "--zzz: unknown option",
                  "-b: missing argument", "unexpected argument: two.ru"],
                 parse("--wrokers", "--zzz", "one.ru", "two.ru", "-b").problems.map(&:to_s)
  end

  # Only the flags that begin like an argument are declared.
  def test_each_beginning_of_a_flag_means_the_same_as_among_all_flags
    flags = Fairlead::Configuration::Flags.new
    parsers = Hash.new { |known, entries| known[entries] = flags.send(:parser, entries) }
    all = parsers[Fairlead::Options.select(&:flag?)]
    beginnings.each do |word|
      assert_equal meaning(all, word), meaning(parsers[flags.send(:possible, [word])], word), word
    end
  end

  def test_shells_can_complete_a_flag
    command = [RbConfig.ruby, "-I", File.join(ROOT, "lib"), File.join(ROOT, "exe/fairlead"), "--*-completion-bash=--wor"]
    assert_includes IO.popen(command, &:read), "--workers"
  end

  def test_the_caller_keeps_its_arguments
    arguments = ["-w", "2", "app.ru"].freeze

    assert_equal 2, Fairlead::Configuration::Flags.parse(arguments)[:workers]
  end

  def test_some_flags_ask_for_something_else
    assert_equal %i[serve check version version help help],
                 [[], ["--check"], ["-V"], ["--version"], ["-h"], ["--help"]].map { |arguments| parse(*arguments).action }
    assert_predicate parse("--debug"), :debug?
    refute_predicate parse, :debug?
  end

  def test_folders_go_on_the_load_path
    before = $LOAD_PATH.dup
    parse("-I", "/a:/b")

    assert_equal ["/a", "/b", *before], $LOAD_PATH
  ensure
    $LOAD_PATH.replace(before)
  end

  def test_a_command_line_for_puma_is_understood
    flags = parse(*%w[-C config/puma.rb -C - -b tcp://127.0.0.1:1 -p 3000 -e production -t 5:5 -w auto --tag x --dir . --preload -v -s
                      --bind-to-activated-sockets only --control-url auto --control-token x --debug --fork-worker=9 --idle-timeout 5
                      --pidfile a.pid -S a.state --plugin tmp_restart --early-hints --prune-bundler -q --redirect-stdout a
                      --redirect-stderr b --redirect-append app.ru])

    assert_empty flags.problems + flags.warnings
    assert_equal [%w[config/puma.rb -], "app.ru", 5, true], %i[config rackup min_threads quiet].map { |name| flags[name] }
  end

  def test_a_value_that_may_be_left_out_does_not_take_the_next_argument
    assert_equal [1000, "app.ru"], parse("-f", "app.ru").then { |flags| [flags[:refork_after], flags[:rackup]] }
    assert_equal [1000, 7, 8], [%w[--fork-worker], %w[-f7], %w[--fork-worker=8]].map { |arguments| parse(*arguments)[:refork_after] }
  end

  def test_flags_of_puma_without_effect_give_one_warning_each
    flags = parse(*%w[-d --daemon --tcp-mode --persistent-connections --extra-runtime-dependencies a,b config.ru])

    assert_empty flags.problems
    assert_equal %w[--daemon --tcp-mode --persistent-connections --extra-runtime-dependencies], flags.warnings.map { |text| text[/\A[\w-]+/] }
    assert_match(/\A--daemon: daemonize has no effect: Fairlead stays in the foreground/, flags.warnings.first)
  end

  def test_no_line_of_the_help_is_too_long
    Fairlead::Configuration::Flags.new.help.lines.each { |line| assert_operator line.chomp.length, :<=, 120, line }
  end

  private

  # In both cases, and short ones after one dash.
  def beginnings
    entries = Fairlead::Options.select(&:flag?)
    negated = entries.select(&:boolean?).flat_map(&:long_flags).map { |flag| "no-#{flag}" }
    long = entries.flat_map(&:long_flags) + negated + %w[no-config help ﬁ ſ]
    words = long.flat_map { |flag| (1..flag.size).map { |size| flag[0, size] } }.uniq
    words.flat_map { |word| ["--#{word}", "--#{word.upcase}", *("-#{word}" if word.size < 3)] } + entries.flat_map { |entry| [*entry.short] }
  end

  # The flag that the parser finds, or the class of its error.
  def meaning(parser, word)
    kind = word.start_with?("--") ? :long : :short
    return parser.send(:complete, kind, word.delete_prefix("--")).first.long if kind == :long

    switch, = parser.send(:search, :short, word[1])
    switch ? [switch.short, switch.long] : parser.send(:complete, :long, word.delete_prefix("-")).first.long
  rescue OptionParser::ParseError => e
    e.class
  end

  def parse(*arguments)
    Fairlead::Configuration::Flags.parse(arguments)
  end
end
