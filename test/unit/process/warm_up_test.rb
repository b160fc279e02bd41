# frozen_string_literal: true

require "test_helper"
require "stringio"

# Requests to the application before it serves.
class WarmUpTest < Minitest::Test
  def setup
    @output = StringIO.new
    @errors = StringIO.new
    @envs = []
    @app = lambda do |env|
      @envs << env
      [200, { "content-type" => "text/plain" }, ["you sent ", env["rack.input"].read]]
    end
  end

  def test_paths_are_requested_again_and_again_before_a_fork
    warm_up("/", "/posts?page=2", workers: 2)

    assert_equal [["/", ""], ["/posts", "page=2"]] * 10, @envs.map { |env| env.values_at("PATH_INFO", "QUERY_STRING") }
    assert_match(/^warmed up with 20 requests in [\d.]+ s$/, @output.string)
  end

  def test_once_if_nothing_is_shared
    warm_up("/")

    assert_equal 1, @envs.size
  end

  def test_the_env_is_one_of_a_request_over_tls_and_marked
    warm_up("/posts")
    env = @envs.first

    assert_equal [true, "GET", "https", "localhost", "443"],
                 env.values_at("fairlead.warm_up", "REQUEST_METHOD", "rack.url_scheme", "HTTP_HOST", "SERVER_PORT")
    assert_valid_env(env)
  end

  def test_the_env_has_the_target_in_bytes_and_callables_for_the_end
    called = []
    app = @app
    @app = lambda do |env|
      env["rack.response_finished"] << ->(_env, status, *) { called << status } << ->(*, error) { called << error }
      env["rack.after_reply"] << -> { called << :replied }
      env["PATH_INFO"] == "/raises" ? raise(KeyError) : app.call(env)
    end
    warm_up("/posts?page=2", "/raises")

    assert_equal ["/posts", "/posts?page=2"], @envs.first.values_at("REQUEST_PATH", "REQUEST_URI")
    names = %w[PATH_INFO QUERY_STRING REQUEST_PATH REQUEST_URI HTTP_HOST SERVER_NAME]
    assert_equal [Encoding::BINARY], @envs.first.values_at(*names).map(&:encoding).uniq
    assert_equal [nil, 200, :replied], called.first(3)
    assert_equal [KeyError, NilClass, Symbol], called.drop(3).map(&:class)
  end

  def test_a_url_names_scheme_and_host
    warm_up("http://shop.example:8080/posts")

    assert_equal ["http", "shop.example:8080", "/posts"], @envs.first.values_at("rack.url_scheme", "HTTP_HOST", "PATH_INFO")
  end

  def test_a_block_makes_requests_itself
    found = nil
    warm_up(->(requests) { found = requests.post("/search", "q=ruby", "content-type" => "text/plain", "x-key" => "1") })

    assert_equal [200, "you sent q=ruby"], [found.status, found.body]
    assert_equal %w[POST text/plain 6 1], @envs.first.values_at("REQUEST_METHOD", "CONTENT_TYPE", "CONTENT_LENGTH", "HTTP_X_KEY")
    assert_valid_env(@envs.first)
  end

  def test_a_problem_is_logged_once_and_the_other_requests_are_made
    good = @app
    @app = lambda do |env|
      case env["PATH_INFO"]
      when "/raises" then raise NotImplementedError, "not yet"
      when "/exits" then exit
      when "/missing" then [404, {}, []]
      else good.call(env)
      end
    end
    warm_up("/raises", "/exits", "/missing", "/", ->(_) { raise "in the block" }, workers: 2)

    assert_equal 10, @envs.size
    lines = @errors.string.lines.grep(/^warm_up/)
    assert_equal ["its block failed", "/raises failed", "/exits failed", "/missing responded with status 404"],
                 lines.map { |line| line[/: (.*?)(?=:|,)/, 1] }
    assert_match(/not yet \(NotImplementedError\)/, @errors.string)
  end

  def test_a_request_that_kills_its_thread_is_logged_and_the_others_are_made
    good = @app
    @app = ->(env) { env["PATH_INFO"] == "/kills" ? Thread.current.kill : good.call(env) }
    warm_up("/before", "/kills", "/", ->(_) { Thread.exit }, workers: 2)

    assert_equal({ "/before" => 10, "/" => 10 }, @envs.map { |env| env["PATH_INFO"] }.tally)
    assert_equal ["warm_up: its block has killed its thread; going on with the next request",
                  "warm_up: /kills has killed its thread; going on with the next request"], @errors.string.lines(chomp: true)
    assert_match(/^warmed up with 20 requests in [\d.]+ s$/, @output.string)
  end

  # Workers inherit them.
  def test_timers_of_its_requests_are_counted_in_one_line
    timer = nil
    @app = ->(_env) { [200, {}, []].tap { timer ||= Fairlead.run_every(1000) { 1 } } }
    warm_up("/", workers: 2)

    assert_equal "warm_up: its requests have started 1 timer of Fairlead, which will run in each worker (see docs/guides/boot.md)\n", @errors.string
  ensure
    timer&.cancel
  end

  def test_bodies_are_closed
    closed = 0
    body = Class.new do
      define_method(:each) { |&block| block.call("x") }
      define_method(:close) { closed += 1 }
    end
    @app = ->(_env) { [200, {}, body.new] }
    warm_up("/")

    assert_equal 1, closed
  end

  def test_a_request_that_hangs_is_given_up_and_its_thread_ends
    thread = nil
    @app = lambda do |_env|
      thread = Thread.current
      sleep
    end
    warm_up("/hangs", "/", warm_up_timeout: 0.05)

    refute_predicate thread, :alive?
    assert_match(%r{^warm_up: /hangs did not end within 0\.05 s; going on without the rest:\n\t.*warm_up_test\.rb:\d+}, @errors.string)
  end

  def test_a_job_that_a_request_defers_never_runs
    background = Fairlead::Background.new(native: Struct.new(:jobs) { def defer(_) = false }.new)
    kept = -> {}
    background.defer(kept)
    background.forget_jobs { background.defer(-> {}) }

    assert_equal [kept], background.instance_variable_get(:@waiting)
  end

  def test_nothing_is_requested_without_paths
    warm_up("none", workers: 2)
    warm_up(workers: 2)

    assert_empty @envs + @output.string.lines
  end

  # Rails in short.
  Route = Struct.new(:named_routes, :url_helpers)
  Helpers = Struct.new(:rails_health_check_path)
  Hosts = Struct.new(:hosts)
  Rails = Struct.new(:application)
  Application = Struct.new(:routes, :config)

  def test_the_health_check_of_rails_is_requested_before_a_fork_in_production
    with_rails("/shop/up", [/any/, ".shop.example"]) do
      warm_up(workers: 2)
      warm_up(workers: 2, environment: "development")
      warm_up(workers: 2, preload: false)
      warm_up
    end

    assert_equal [["/shop/up", "shop.example"]] * 10, @envs.map { |env| env.values_at("PATH_INFO", "HTTP_HOST") }
  end

  def test_an_application_without_health_check_is_not_asked_for_it
    with_rails(nil, []) { warm_up(workers: 2) }

    assert_empty @envs
  end

  private

  def warm_up(*steps, environment: "production", **options)
    options[:warm_up] = steps if steps.any?
    configuration = Fairlead::Configuration.from_options({ bind: "tcp://127.0.0.1:0", environment: environment, **options })
    app = @app
    service = Struct.new(:configuration, :log, :app) { def preload? = configuration.preload? }
    Fairlead::WarmUp.new(service.new(configuration, Fairlead::EventLog.new(output: @output, errors: @errors), app)).run
  end

  def with_rails(path, hosts)
    routes = Route.new(path ? { rails_health_check: true } : {}, Helpers.new(path))
    before = Object.send(:remove_const, :Rails) if defined?(::Rails)
    Object.const_set(:Rails, Rails.new(Application.new(routes, Hosts.new(hosts))))
    yield
  ensure
    Object.send(:remove_const, :Rails)
    Object.const_set(:Rails, before) if before
  end

  # Against the SPEC, as far as the installed Rack knows it.
  def assert_valid_env(env)
    require "rack"
    app = ->(_env) { [200, { "content-type" => "text/plain" }, []] }
    kept = env.merge("rack.input" => StringIO.new("".b))

    assert_equal(200, Rack::Lint.new(app).call(kept).first)
  end
end
