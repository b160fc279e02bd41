# frozen_string_literal: true

require "test_helper"
require "support/fake_server"

class ControlSocketsTest < Minitest::Test
  include Fairlead::Test::Folders

  Sockets = Fairlead::Control::Sockets

  def teardown = (@opened || []).each(&:remove)

  def test_nothing_is_opened_that_is_not_configured
    sockets = open_for

    assert_equal [nil, nil, nil, nil], [sockets.control, sockets.health, sockets.url, sockets.token]
  end

  def test_a_plugin_for_puma_gets_a_control_server_that_nobody_is_told_of
    in_folder("config/x" => "") do
      sockets = open_for(plugin: "anything", temp_dir: Dir.pwd)

      assert_match(%r{\Aunix://#{Dir.pwd}/fairlead-control-\h{16}\.sock\z}, sockets.url)
      assert_equal sockets.url, sockets.control.binding
      assert_match(/\A\h{32}\z/, sockets.token)
      assert_empty told(sockets)
    end
  end

  def test_beside_a_supervisor_its_addresses_are_left_to_it
    first = open_for(control_url: "tcp://127.0.0.1:0", health_url: "tcp://127.0.0.1:0")
    health = "tcp://127.0.0.1:#{first.health.port}"
    second = beside(first, control_url: first.url, health_url: health)

    assert_equal [first.url, health], [second.control, second.health].map(&:binding)
    assert_equal [first.url, first.token], [second.url, second.token]
    assert_kind_of Sockets::Present, second.control
    assert_empty told(second)
  end

  def test_without_a_supervisor_an_address_in_use_is_refused
    first = open_for(control_url: "tcp://127.0.0.1:0")

    assert_predicate assert_raises(Fairlead::BindError) { open_for(control_url: first.url) }, :in_use?
  end

  def test_auto_means_what_it_has_meant
    in_folder({}) do
      first = open_for(control_url: "auto", temp_dir: Dir.pwd)
      second = beside(first, control_url: "auto", temp_dir: Dir.pwd)

      assert_equal first.url, second.url
      assert_equal 1, Dir.children(".").size
      first.remove
      assert_empty Dir.children(".")
    end
  end

  def test_a_failure_leaves_nothing_open
    in_folder({}) do
      assert_raises(Fairlead::BindError) { open_for(health_url: "unix://health.sock", control_url: "unix://no/control.sock") }
      assert_empty Dir.children(".")
    end
  end

  def test_the_publish_socket_is_for_its_owner_alone_and_leaves_with_the_server
    in_folder({}) do
      assert_raises(Fairlead::BindError) { open_for(publish_socket: "two/folders/publish.sock") }
      sockets = open_for(publish_socket: "folder/publish.sock")

      assert_equal 0o600, File.stat("folder/publish.sock").mode & 0o777
      sockets.remove
      assert_empty Dir.children("folder")
    end
  end

  def test_a_publish_socket_of_another_server_is_left_to_it
    in_folder({}) do
      first = open_for(publish_socket: "publish.sock")
      second = open_for(publish_socket: "publish.sock")

      assert_nil second.publishing
      assert_match(/\Awarning: .*: another process listens on it \(publish_socket\)$/, told(second))
      assert_empty told(first)
      assert_kind_of Sockets::Present, beside(first, publish_socket: "publish.sock").publishing
    end
  end

  def test_who_may_use_it_is_told
    sockets = open_for(control_url: "tcp://127.0.0.1:0", control_token: "none")

    assert_match(/control server on tcp:.*\nwarning: the control server on .* takes commands from everybody/, told(sockets))
  end

  private

  def open_for(**options) = open_sockets(Sockets.new(configuration(options)))

  def beside(other, **options)
    open_sockets(Sockets.new(configuration(options), url: other.url, token: other.token), beside: true)
  end

  def open_sockets(sockets, **how)
    (@opened ||= []) << sockets
    sockets.open(**how)
  end

  def configuration(options) = Fairlead::Configuration.from_options(options)

  def told(sockets) = Fairlead::Test::CollectedLog.new.tap { |log| sockets.announce(log) }.text
end
