# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "support/apart"

class AgooServerTest < Minitest::Test
  include Fairlead::Test::Apart
  include Fairlead::Test::Folders

  Says = Struct.new(:text) do
    def call(_env) = [200, { "content-type" => "text/plain" }, [text]]
  end

  # An application that is passed as a class, with #call for its instances.
  class Instances
    def call(_env) = [200, {}, ["an instance"]]
  end

  def setup
    ENV.delete_if { |name, _| Fairlead::Test::ServerProcess::CLEARED.include?(name) }
    require "fairlead/compat/agoo"
  end

  def test_paths_choose_the_handler
    init
    Agoo::Server.handle(:GET, "/one", Says.new("one"))
    Agoo::Server.handle(:GET, "/users/*/name", Says.new("part"))
    Agoo::Server.handle(nil, "/deep/**", Says.new("rest"))
    Agoo::Server.handle(:GET, "/class", Instances)
    Agoo::Server.handle(:GET, "/named", "AgooServerTest::Instances")

    texts = { "/one" => "one", "/users/7/name" => "part", "/deep/a/b" => "rest", "/class" => "an instance", "/named" => "an instance" }
    texts.each { |path, text| assert_equal text, answer(path).last, path }
    %w[/ /one/ /users/7/8/name /oneX].each { |path| assert_equal 404, answer(path).first, path }
    assert_equal [404, 200], [answer("/one", "POST").first, answer("/deep/a", "POST").first]
  end

  def test_what_is_not_found_has_a_handler_too
    init
    Agoo::Server.handle_not_found(Says.new("nothing here"))

    assert_equal [200, "nothing here"], answer("/missing")
  end

  def test_files_come_behind_the_handlers
    in_folder("root/page.txt" => "file", "root/one" => "file") do
      init("root")
      Agoo::Server.handle(:GET, "/one", Says.new("handler"))

      assert_equal %w[file handler], [answer("/page.txt").last, answer("/one").last]
    end
  end

  def test_files_that_come_first_are_for_the_engine
    in_folder("root/one" => "file") do |folder|
      configuration = started { init("root", root_first: true, thread_count: 0) }

      assert_equal "#{folder}/root", configuration.public_dir
      assert_equal 404, answer("/one").first
      assert_nil started { init("root", thread_count: 0) }.public_dir
    end
  end

  def test_files_of_a_type_of_its_own_are_not
    in_folder("root/one.gallery" => "file") do
      configuration = started do
        init("root", root_first: true, thread_count: 0)
        Agoo::Server.handle(nil, "/**", Says.new("handler"))
        Agoo::Server.add_mime("gallery", "image/gallery")
      end

      assert_nil configuration.public_dir
      assert_equal [200, "file"], answer("/one.gallery")
      assert_equal "handler", answer("/two").last
    end
  end

  def test_middleware_comes_in_front
    wrap = Struct.new(:app, :mark) { def call(env) = app.call(env).tap { |answer| answer.last << mark } }
    init
    Agoo::Server.use(wrap, "outer")
    Agoo::Server.use(wrap, "inner")
    Agoo::Server.handle(:GET, "/one", ->(_) { [200, {}, ["app"]] })

    assert_equal "appinnerouter", answer("/one").last
  end

  def test_with_no_threads_the_program_is_the_server
    Agoo::Log.configure(states: { request: true })
    Agoo::Server.rack_early_hints(true)
    configuration = started { Agoo::Server.init(6464, nil, thread_count: 0, worker_count: 3, connection_timeout: 12) }

    assert_match(/:6464\z/, configuration.bind.first)
    assert_equal [3, 12, true, true],
                 [configuration.workers, configuration.keep_alive_timeout, configuration.log_requests?, configuration.early_hints?]
  end

  def test_addresses_come_in_many_forms
    configuration = started { Agoo::Server.init(0, nil, thread_count: 0, bind: ["http://[::1]:1", "unix:///tmp/a", "http://127.0.0.1:2"]) }

    assert_equal %w[tcp://[::1]:1 unix:///tmp/a tcp://127.0.0.1:2], configuration.bind
    assert_raises(ArgumentError) { Agoo::Server.init(0, nil, bind: "nonsense") }
    assert_raises(ArgumentError) { Agoo::Server.init(0, nil, bind: "gopher://127.0.0.1:1") }
  end

  def test_addresses_with_tls_have_the_certificate
    configuration = started do
      Agoo::Server.init(0, nil, thread_count: 0, ssl_cert: "a.pem", ssl_key: "a.key",
                                bind: ["http://127.0.0.1:1", "https://127.0.0.1:2", "ssl://[::1]:3", "https://127.0.0.1"])
    end

    assert_equal ["tcp://127.0.0.1:1", *%w[127.0.0.1:2 [::1]:3 127.0.0.1:443].map { |place| "ssl://#{place}?cert=a.pem&key=a.key" }],
                 configuration.bind
  end

  def test_a_certificate_takes_a_key_and_tls_takes_both
    assert_match(/both/, assert_raises(ArgumentError) { Agoo::Server.init(0, nil, ssl_cert: "a.pem") }.message)
    assert_match(/both/, assert_raises(ArgumentError) { Agoo::Server.init(0, nil, ssl_key: "a.key") }.message)
    assert_match(%r{https://127\.0\.0\.1:1}, assert_raises(ArgumentError) { Agoo::Server.init(0, nil, bind: "https://127.0.0.1:1") }.message)
  end

  def test_mistakes_are_told
    assert_raises(Fairlead::Error) { Agoo::Server.handle(:GET, "/", Instances) }
    init
    assert_raises(ArgumentError) { Agoo::Server.handle(:FETCH, "/", Instances) }
    assert_raises(ArgumentError) { Agoo::Server.init(0, nil, thread: 1) }
    assert_raises(NotImplementedError) { Agoo::Server.handle(:GET, "/", Object.new) }
    Agoo::Server.init(0, nil, worker_count: 2)
    assert_raises(NotImplementedError) { Agoo::Server.start }
  end

  private

  def init(root = nil, **options) = Agoo::Server.init(0, root, options)

  # Returns [status, text] of the program so far.
  def answer(path, method = "GET")
    status, _, body = Agoo::Server.send(:app).call({ "REQUEST_METHOD" => method, "PATH_INFO" => path })
    text = +""
    body.each { |part| text << part }
    [status, text]
  end

  # Returns the configuration that the block starts with.
  def started
    given = nil
    launch = lambda do |configuration, **|
      given = configuration
      Struct.new(:run).new(0)
    end
    yield
    Fairlead::Launcher.stub(:new, launch) { Agoo::Server.start }
    given
  end
end
