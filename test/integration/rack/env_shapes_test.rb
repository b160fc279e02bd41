# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Requests with the same method and field names share most of their env (ext/fairlead/src/rack/shape.rs). After any earlier
# requests, and any changes of earlier envs by the application, a request gets an env that depends on itself alone.
class EnvShapesTest < Minitest::Test
  include Fairlead::Test::HttpServing

  # Responds with the String entries, and then damages the env as thoroughly as an application can. `x-keep` keeps an env;
  # `/kept` responds with it.
  APP = <<~RUBY
    $kept ||= []
    told = env["PATH_INFO"] == "/kept" ? $kept : [env]
    texts = told.map do |one|
      one.select { |_, value| value.is_a?(String) }.transform_values { |value| value.dup.force_encoding("UTF-8").scrub }
    end
    if env["HTTP_X_KEEP"]
      $kept << env
    else
      env.each_value { |value| value << " damaged" if value.is_a?(String) && !value.frozen? }
      env["HTTP_X_MORE"] = "more"
      env.delete("HTTP_ACCEPT")
      env["rack.after_reply"] << -> {} if env["PATH_INFO"].start_with?("/after")
    end
    [200, { "content-type" => "application/json" }, [JSON.generate(texts)]]
  RUBY

  # Env of one request, computed by this test itself.
  def expected(method, target, fields, http11: true)
    path, query = target.split("?", 2)
    host = fields.assoc("Host")&.last
    name, port = host&.split(":")
    own = fields.reject { |field, _| field.include?("_") || field == "Host" }
    envs = own.group_by { |field, _| key(field) }
    envs = envs.to_h { |key, all| [key, all.map(&:last).join(key == "HTTP_COOKIE" ? "; " : ", ")] }
    version = http11 ? "HTTP/1.1" : "HTTP/1.0"
    envs.merge!("HTTP_HOST" => host, "SERVER_NAME" => name, "SERVER_PORT" => port || "80") if host
    envs.merge("REQUEST_METHOD" => method, "PATH_INFO" => path, "REQUEST_PATH" => path, "REQUEST_URI" => target,
               "QUERY_STRING" => query.to_s, "SERVER_PROTOCOL" => version, "HTTP_VERSION" => version)
  end

  def key(field)
    name = field.upcase.tr("-", "_")
    %w[CONTENT_TYPE CONTENT_LENGTH].include?(name) ? name : "HTTP_#{name}"
  end

  # Differs between requests, but is not one of the fields.
  def constant?(name) = %w[SCRIPT_NAME SERVER_SOFTWARE GATEWAY_INTERFACE REMOTE_ADDR HTTP_X_REQUEST_START rack.url_scheme].include?(name)

  def ask(client, method, target, fields, version: "1.1", body: "")
    lines = fields.map { |name, value| "#{name}: #{value}\r\n" }.join
    client.write("#{method} #{target} HTTP/#{version}\r\n#{lines}\r\n#{body}")
    JSON.parse(client.answer.body)
  end

  def assert_env(client, method, target, fields, version: "1.1", body: "")
    env = ask(client, method, target, fields, version:, body:).first
    wanted = expected(method, target, fields, http11: version == "1.1")
    wanted = wanted.merge(env.slice("SERVER_NAME", "SERVER_PORT")) unless wanted["HTTP_HOST"]
    assert_equal wanted.sort, env.reject { |name, _| constant?(name) }.sort
  end

  HOST = %w[Host example.com].freeze
  NAMES = %w[Accept User-Agent Cookie X-Forwarded-For If-None-Match X-Odd-Name Referer X_Under DNT].freeze

  def with(*fields) = [HOST, *fields]

  def serve_one_thread(*options) = serve(unlinted(APP), "--threads", "1:1", *options)

  def test_requests_of_all_shapes_in_any_order
    client = connect(serve_one_thread)
    random = Random.new(seed = Random.new_seed)
    kinds = Array.new(12) { [%w[GET GET DELETE].sample(random:), NAMES.sample(random.rand(NAMES.size), random:)] }
    600.times do |number|
      method, names = kinds.sample(random:)
      fields = [["Host", "h#{number % 3}.example:#{(number % 2) + 8000}"], *names.map { |name| [name, "#{name} #{number}"] }]
      target = "/#{number}#{"?q=#{number}" if number.odd?}"
      assert_env(client, method, target, fields)
    rescue Minitest::Assertion => e
      raise e, "#{e.message} (seed #{seed})"
    end
  end

  def test_requests_that_differ_in_one_thing_only
    client = connect(serve_one_thread)
    3.times do |turn|
      3.times do
        assert_env(client, "GET", "/a", with(%w[Accept a], ["Cookie", "c=#{turn}"]))
        assert_env(client, "GET", "/a", with(["Cookie", "c=#{turn}"], %w[Accept a]))
        assert_env(client, "GET", "/a", with(%w[accept a], ["Cookie", "c=#{turn}"]))
        assert_env(client, "GET", "/a", with(%w[Accept a], %w[Accept b]))
        assert_env(client, "GET", "/a", with(%w[Accept a], %w[Cookie b], %w[Cookie c]))
        assert_env(client, "PUT", "/a", with(%w[Accept a], ["Cookie", "c=#{turn}"]))
        assert_env(client, "POST", "/a", with(%w[Content-Length 2]), body: "ab")
        assert_env(client, "POST", "/a", with(%w[Content-Length 0]))
        assert_env(client, "GET", "/after", with(%w[Accept a], ["Cookie", "c=#{turn}"]))
        assert_env(client, "GET", "/", [%w[Connection keep-alive]], version: "1.0")
        assert_env(client, "GET", "/", with(%w[Connection keep-alive]), version: "1.0")
        assert_env(client, "GET", "/", with(%w[Connection keep-alive]))
      end
    end
  end

  def test_many_and_long_names
    client = connect(serve_one_thread("--head-max-fields", "100"))
    4.times do
      assert_env(client, "GET", "/", [HOST, *Array.new(47) { |number| ["X-#{number}", "v"] }])
      assert_env(client, "GET", "/", [HOST, *Array.new(70) { |number| ["X-#{number}", "v"] }])
      assert_env(client, "GET", "/", [HOST, *Array.new(66) { |number| ["x_#{number}", "v"] }, %w[Accept a]])
      assert_env(client, "GET", "/", [HOST, ["X-#{"long" * 300}", "v"]])
    end
  end

  # A kept env belongs to the application, and the next one has other values.
  def test_an_env_that_is_kept_stays_as_it_is
    client = connect(serve_one_thread)
    requests = Array.new(6) { |number| ["GET", "/#{number}", [HOST, ["X-Keep", "value #{number}"], ["Cookie", "c" * (30 + number)]]] }
    requests.each { |request| ask(client, *request) }
    200.times { |number| assert_env(client, "GET", "/other#{number}", [HOST, ["Cookie", "x" * number]]) }
    kept = ask(client, "GET", "/kept", [HOST])

    assert_equal(requests.map { |request| expected(*request) }, kept.map { |env| env.reject { |name, _| constant?(name) } })
  end

  # These have the longest keys; if repeated, their values are joined like all others.
  def test_repeated_fields_with_long_names
    client = connect(serve_one_thread)
    6.times do |number|
      [118, 119, 123, 124, 128, 200, 400].each do |length|
        name = "X-#{"l" * (length - 2)}"
        fields = with([name, "a#{number}"], %w[Accept first], [name, "b#{number}"], ["X-Last", "last #{number}"])
        assert_env(client, "GET", "/#{number}", fields)
      end
    end
  end

  def test_what_an_application_does_to_an_unusual_method_stays_in_its_request
    client = connect(serve_one_thread)
    6.times { |number| assert_env(client, "PROPFIND", "/#{number}", with(["Accept", number.to_s])) }
  end

  # The lists of callables, which the application may freeze, extend, mark or keep.
  def test_lists_of_one_request_are_not_those_of_another
    app = <<~RUBY
      lists = env.values_at("rack.after_reply", "rack.response_finished")
      clean = lists.none? { |list| list.frozen? || list.singleton_methods.any? || list.instance_variables.any? }
      empty = lists.all?(&:empty?)
      ($kept ||= []).concat(lists)
      case env["PATH_INFO"]
      when "/freeze" then lists.each(&:freeze)
      when "/extend" then lists.each { |list| list.define_singleton_method(:odd) { 1 } }
      when "/mark" then lists.each { |list| list.instance_variable_set(:@mark, 1) }
      end
      [200, {}, [[clean, empty, $kept.uniq(&:object_id).size == $kept.size].inspect]]
    RUBY
    client = connect(serve(unlinted(app), "--threads", "1:1"))
    %w[/freeze /extend /mark /plain /plain /freeze /plain].each { |path| assert_equal "[true, true, true]", client.get(path).body, path }
  end

  METHODS = %w[GET GET POST PROPFIND REPORT M-SEARCH QUERY x!'].freeze

  def random_name(random)
    length = [random.rand(1..12), random.rand(1..400), random.rand(115..130)].sample(random:)
    "q#{Array.new(length - 1) { [*"a".."z", *"A".."Z", *"0".."9", "-", "-", "!", "~", "'"].sample(random:) }.join}"
  end

  # A method and names, some of them repeated, perhaps in different case.
  def random_shape(random)
    names = Array.new(random.rand(0..9)) { random.rand(3).zero? ? NAMES.sample(random:) : random_name(random) }
    names += names.sample(random.rand(0..3), random:).map { |name| random.rand(2).zero? ? name : name.swapcase }
    [METHODS.sample(random:), names.shuffle(random:)]
  end

  # Each shape comes several times, between others; the application changes each env, and the collector moves objects.
  def test_requests_of_random_shapes
    client = connect(serve(unlinted("GC.compact if env['HTTP_X_COMPACT']\n#{APP}"), "--threads", "1:1"))
    random = Random.new(seed = Random.new_seed)
    10.times do
      shapes = Array.new(6) { random_shape(random) }
      60.times do |number|
        method, names = shapes.sample(random:)
        fields = [HOST, *names.map.with_index { |name, index| [name, "#{index} of #{number}"] }]
        fields << %w[X-Compact 1] if number % 20 == 7
        assert_env(client, method, "/#{number}", fields)
      rescue Minitest::Assertion, JSON::ParserError => e
        raise Minitest::Assertion, "#{e.message} (seed #{seed})"
      end
    end
  end
end
