# frozen_string_literal: true

require "test_helper"
require "stringio"

# Middleware that the files of lib/fairlead/compat put in front of every application, and its information about the server.
class MiddlewareTest < Minitest::Test
  include Fairlead::Test::Folders

  # Adds its name to the response, outermost first.
  Mark = Struct.new(:name) do
    def new(app) = ->(env) { app.call(env).tap { |_, _, body| body.unshift(name) } }
  end

  def setup
    @before = registry
    self.registry = []
  end

  def teardown
    self.registry = @before
  end

  def test_the_first_one_is_outermost_and_each_comes_once
    %w[outer inner outer].each { |name| Fairlead::AppLoader.use(Mark.new(name)) }

    assert_equal %w[outer inner app], call(Fairlead::AppLoader.wrap(app))
  end

  def test_without_any_the_application_is_what_it_was
    application = app

    assert_same application, Fairlead::AppLoader.wrap(application)
    assert_same application, service(app: application).app
  end

  def test_a_rackup_file_may_put_one_in_front_of_itself
    MiddlewareTest.const_set(:LATE, Mark.new("late"))
    in_folder("config.ru" => "Fairlead::AppLoader.use(MiddlewareTest::LATE)\nrun ->(_) { [200, {}, ['app']] }") do
      loaded = service(rackup: "config.ru")

      assert_equal %w[late app], call(loaded.app)
      assert_same loaded.app, loaded.app
    end
  ensure
    MiddlewareTest.send(:remove_const, :LATE)
  end

  def test_an_application_that_was_given_is_there_before_the_workers
    assert_predicate service(app: app), :preload?
    refute_predicate service, :preload?
  end

  def test_the_launcher_is_known_while_it_runs
    launcher = seen = nil
    in_folder("config.ru" => "") do
      launcher = Fairlead::Launcher.new(Fairlead::Configuration.from_options(bind: "unix://missing/folder", quiet: true))
      launcher.define_singleton_method(:prepare_process) { seen = [Fairlead::Launcher.current, pid] }
      assert_raises(Fairlead::ConfigurationError) { launcher.run }
    end

    assert_equal [launcher, Process.pid], seen
    assert_nil Fairlead::Launcher.current
  end

  private

  def registry = Fairlead::AppLoader.instance_variable_get(:@middleware)

  def registry=(list)
    Fairlead::AppLoader.instance_variable_set(:@middleware, list)
  end

  def app = ->(_) { [200, {}, ["app"]] }

  def call(application) = application.call({}).last

  def service(app: nil, **options)
    Fairlead::Service.new(Fairlead::Configuration.from_options(options), log: Fairlead::EventLog.new(quiet: true), app: app)
  end
end
