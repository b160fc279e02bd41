# frozen_string_literal: true

require "test_helper"
require "support/file_serving"

# Symbolic links in the public folder, with each of the rules. No response may contain the content of the outside files.
class SymlinksTest < Minitest::Test
  include Fairlead::Test::FileServing

  CANARY = "CANARY: outside of the folder"

  # Name of the link => target. INSIDE stays in the folder, OUTSIDE leads to an existing file outside of it.
  INSIDE = {
    "link.txt" => "page.txt", "sub/up.txt" => "../page.txt", "to-sub" => "sub", "twice.txt" => "link.txt",
    "sub/to-deep" => "../sub/deep"
  }.freeze
  OUTSIDE = {
    "out.txt" => "../outside.txt", "sub/out.txt" => "../../outside.txt", "to-out" => "../outside",
    "neighbour.txt" => "../public-secret/outside.txt", "over.txt" => "to-out/outside.txt", "back.txt" => "../public/page.txt"
  }.freeze
  DEAD = { "dangling.txt" => "missing.txt", "loop.txt" => "loop.txt", "away.txt" => "../missing.txt" }.freeze

  # Paths through the links that stay inside => content.
  REACHED = {
    "/link.txt" => "page", "/sub/up.txt" => "page", "/to-sub/x.txt" => "x", "/twice.txt" => "page", "/sub/to-deep/y.txt" => "y",
    "/to-sub/" => "index"
  }.freeze
  BEYOND = %w[/out.txt /sub/out.txt /to-out/outside.txt /neighbour.txt /over.txt /absolute.txt /proc/self/environ /proc/self/root/etc/passwd
              /root/etc/passwd /to-out /to-out/].freeze

  def test_by_default_links_have_to_stay_inside
    linux_only("openat2, which checks the targets of links")
    [[], ["--public-symlinks", "inside"]].each do |arguments|
      client = connect(serving(*arguments))

      REACHED.each { |path, content| assert_file content, client.get(path), path }
      assert_equal [301, "/to-sub/"], client.get("/to-sub").then { |answer| [answer.status, answer["location"]] }
      (BEYOND + %w[/back.txt] + dead).each { |path| assert_from_app client.get(path), path }
      assert_file "page", client.get("/page.txt")
    end
  end

  def test_none_is_followed_where_the_operator_wants_none
    client = connect(serving("--public-symlinks", "none"))

    (REACHED.keys + BEYOND + %w[/to-sub] + dead).each { |path| assert_from_app client.get(path), path }
    assert_file "page", client.get("/page.txt")
    assert_file "x", client.get("/sub/x.txt")
  end

  def test_all_are_followed_where_the_operator_wants_all
    client = connect(serving("--public-symlinks", "all"))

    REACHED.each { |path, content| assert_file content, client.get(path), path }
    %w[/out.txt /sub/out.txt /to-out/outside.txt /neighbour.txt /over.txt /absolute.txt].each { |path| assert_file CANARY, client.get(path), path }
    dead.each { |path| assert_from_app client.get(path), path }
    %w[/../outside.txt /to-out/../outside.txt /%2e%2e/outside.txt].each { |path| assert_from_app client.get(path), path }
  end

  def test_the_folder_itself_may_be_a_link
    linux_only("openat2, which checks the targets of links")
    server = serve_folder({ "real/page.txt" => "page", "real/sub/x.txt" => "x" }, "--public", "link") do |one|
      File.symlink("real", one.path("link"))
      File.symlink("page.txt", one.path("real/inner.txt"))
    end
    client = connect(server)

    { "/page.txt" => "page", "/sub/x.txt" => "x", "/inner.txt" => "page" }.each { |path, content| assert_file content, client.get(path), path }
  end

  def test_a_file_that_turns_into_a_link_is_not_taken_from_memory
    server = serving
    client = connect(server)
    settle(server.path("public/page.txt"))
    3.times { assert_file "page", client.get("/page.txt") }
    File.delete(server.path("public/page.txt"))
    File.symlink(server.path("outside.txt"), server.path("public/page.txt"))

    3.times { assert_from_app client.get("/page.txt") }
  end

  # The files in it keep their name, content and times; only the path to them has changed.
  def test_a_folder_that_turns_into_a_link_is_not_taken_from_memory
    server = serving
    client = connect(server)
    settle(server.path("public/sub/x.txt"))
    3.times { assert_file "x", client.get("/sub/x.txt") }
    File.rename(server.path("public/sub"), server.path("moved"))
    File.symlink("../moved", server.path("public/sub"))

    3.times { assert_from_app client.get("/sub/x.txt") }
  end

  def test_a_link_that_is_swapped_all_the_time_never_lets_anything_out
    linux_only("openat2, which checks the targets of links")
    server = serving
    swapped = { "flip.txt" => ["page.txt", server.path("outside.txt")], "flip" => ["sub", server.path("outside")] }
    swapping = true
    swapper = Thread.new { swapped.cycle { |name, targets| swapping ? targets.each { |target| swap(server, name, target) } : break } }
    wait_until("the first links") { swapped.keys.all? { |name| File.symlink?(server.path("public/#{name}")) } }
    client = connect(server)

    seen = Array.new(3000) { |number| client.get(number.even? ? "/flip.txt" : "/flip/outside.txt") }
    refused, served = seen.partition { |answer| answer["x-from"] == "app" }
    refute_empty refused, "the links were never swapped"
    assert_equal %w[inside page], served.map(&:body).uniq.sort
  ensure
    swapping = false
    swapper&.join
  end

  private

  def serving(*arguments)
    files = { "page.txt" => "page", "sub/x.txt" => "x", "sub/index.html" => "index", "sub/deep/y.txt" => "y", "sub/outside.txt" => "inside" }
    serve_public(files, *arguments) do |server|
      %w[outside.txt outside/outside.txt outside/index.html public-secret/outside.txt].each { |name| server.write(name, CANARY) }
      { **INSIDE, **OUTSIDE, **DEAD, "absolute.txt" => server.path("outside.txt"), "proc" => "/proc", "root" => "/" }.each do |name, target|
        File.symlink(target, server.path("public/#{name}"))
      end
    end
  end

  def dead = DEAD.keys.map { |name| "/#{name}" }

  # Replaces a link with another one, in one step.
  def swap(server, name, target)
    File.symlink(target, server.path("next"))
    File.rename(server.path("next"), server.path("public/#{name}"))
  end
end
