# frozen_string_literal: true

require "test_helper"
require "stringio"

class ServiceTest < Minitest::Test
  include Fairlead::Test::Folders

  def test_an_application_that_is_given_is_the_application
    app = ->(_) { [200, {}, []] }

    assert_same app, service(app: app).app
  end

  def test_without_any_application_there_are_the_files
    in_folder("www/a" => "") { assert_equal [404, {}, []], service(public_dir: "www").app.call({}) }
  end

  private

  def service(app: nil, environment: "production", **options)
    configuration = Fairlead::Configuration.from_options({ bind: "tcp://127.0.0.1:0", environment: environment, **options })
    Fairlead::Service.new(configuration, log: Fairlead::EventLog.new(output: StringIO.new, errors: StringIO.new), app: app)
  end
end
