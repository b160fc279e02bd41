# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# The hook out_of_band: after a request, when there is nothing else to do.
class OutOfBandTest < Minitest::Test
  include Fairlead::Test::HttpServing

  APP = <<~'RUBY'
    Notes.add("begin #{env["PATH_INFO"]}")
    sleep 0.01 until File.exist?("go") || env["PATH_INFO"] != "/wait"
    Notes.add("end #{env["PATH_INFO"]}")
    [200, {}, ["ok"]]
  RUBY

  def test_it_runs_once_after_each_request_of_a_client_that_waits_for_its_answers
    server = serving("out_of_band { Notes.add('out') }")
    client = connect(server)

    3.times do |count|
      assert_equal 200, client.get.status
      assert_equal (["begin /", "end /", "out"] * (count + 1)), wait_for_notes(server, (count + 1) * 3)
    end
  end

  def test_it_does_not_run_while_another_request_does
    server = serving("out_of_band { Notes.add('out') }", "-t", "2:2")
    waiting = connect(server).request("GET", "/wait")
    wait_for_notes(server, 1)
    client = connect(server)
    3.times { assert_equal 200, client.get.status }
    refute_includes notes(server), "out"
    server.write("go", "")

    assert_equal 200, waiting.answer.status
    assert_equal "out", wait_for_notes(server, 9).last
  end

  def test_a_block_that_waits_keeps_no_request
    server = serving("out_of_band { Notes.add('out'); sleep }", "-t", "2:2")
    client = connect(server)
    client.get
    wait_for_notes(server, 3)

    3.times { assert_equal 200, client.get.status }
    assert_equal 1, notes(server).count("out")
  end

  def test_a_block_that_raises_is_logged_and_the_others_run
    server = serving("out_of_band { raise 'own' }\nout_of_band { Notes.add('out') }")
    get(server)

    assert_logged(/out_of_band failed: .*own \(RuntimeError\)/, server)
    assert_includes wait_for_notes(server, 3), "out"
  end

  def test_the_application_may_give_a_block_too
    server = serve(unlinted(APP, setup: "Fairlead.on(:out_of_band) { Notes.add('out') }"), "-w", 1, "--preload")
    get(server)

    assert_equal "out", wait_for_notes(server, 3).last
  end

  private

  def serving(configuration, *arguments)
    serve(unlinted(APP), "-C", "config.rb", *arguments, files: { "config.rb" => configuration })
  end
end
