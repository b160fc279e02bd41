# frozen_string_literal: true

require "test_helper"

class PublishSocketTest < Minitest::Test
  include Fairlead::Test::Folders

  Place = Fairlead::PublishSocket

  def test_the_usual_place_is_for_applications_with_the_adapter
    in_folder("config/cable.yml" => "production:\n  adapter: fairlead\n") do
      assert_equal "#{Dir.pwd}/tmp/sockets/fairlead.sock", Place.default(Dir.pwd)
    end
    in_folder("config/cable.yml" => "production:\n  adapter: redis\n") { assert_nil Place.default(Dir.pwd) }
    in_folder({}) { assert_nil Place.default(Dir.pwd) }
  end

  def test_a_process_beside_the_server_finds_the_same_place
    assert_equal "/srv/shop/tmp/sockets/fairlead.sock", find
    assert_equal "/run/a.sock", find(nil, "FAIRLEAD_PUBLISH_SOCKET" => "/run/a.sock")
    assert_equal "/srv/shop/b.sock", find("b.sock", "FAIRLEAD_PUBLISH_SOCKET" => "/run/a.sock")
    assert_nil find(false)
    assert_nil find(nil, "FAIRLEAD_PUBLISH_SOCKET" => "false")
    assert_raises(ArgumentError) { with_variable("none") { Fairlead::PubSub::RunningServer.of("/srv/shop") } }
  end

  def test_its_address_keeps_every_byte_of_the_path
    path = "/tmp/a b%20?c=\xFF".b
    binding = Fairlead::Binding.parse(Place.address(path))

    assert_equal path, binding.path.b
  end

  private

  def find(given = nil, environment = {}) = Place.find("/srv/shop", given, environment: environment)

  def with_variable(value)
    former = ENV.fetch(Place::VARIABLE, nil)
    ENV[Place::VARIABLE] = value
    yield
  ensure
    ENV[Place::VARIABLE] = former
  end
end
