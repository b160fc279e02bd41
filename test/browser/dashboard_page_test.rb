# frozen_string_literal: true

require "test_helper"
require "support/control"
require "support/pausing"
require_relative "support/browsing"

# The dashboard of the control server in a browser, most of all while every thread of the application hangs.
class DashboardPageTest < Minitest::Test
  include Fairlead::Test::Browsing
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled
  include Fairlead::Test::Pausing

  # Hangs, with a frame to find in the backtrace, until the file exists.
  APP = <<~RUBY
    GO = File.expand_path("go")
    def wait_for_ever = (sleep(0.01) until File.exist?(GO))
    run ->(env) { wait_for_ever if env["PATH_INFO"].start_with?("/hang"); [200, {}, ["hello"]] }
  RUBY

  PHONE = { viewport: { width: 360, height: 740 } }.freeze
  ROWS = "[...document.querySelectorAll('#running .request')].map(row => row.textContent)"
  FOCUSED = "document.activeElement.closest('button')?.querySelector('.request')?.textContent"

  # Names of everything that the page has loaded or asked for.
  ORIGINS = "[...new Set(performance.getEntriesByType('resource').map(entry => new URL(entry.name)).filter(url => url.protocol !== 'data:')" \
            ".map(url => url.origin))]"

  def hung(*arguments, threads: 2)
    server = serve(APP, "-t", "1:1", *arguments, *FLAGS)
    threads.times { |i| connect(server).write("GET /hang/#{i}?secret=1 HTTP/1.1\r\nhost: a\r\n\r\n") }
    server
  end

  # The page with the token behind the #.
  def dashboard(server, **options) = browse("#{state(server)["control_url"].sub("tcp:", "http:")}/##{TOKEN}", **options)

  def quiet(page)
    assert_empty page.said
    assert_equal [page.evaluate("location.origin")], page.evaluate(ORIGINS)
    assert_equal "/", page.evaluate("location.pathname + location.search + location.hash")
  end

  def test_it_shows_the_requests_and_the_backtraces_of_a_server_whose_threads_all_hang
    page = dashboard(hung("-w", 2))
    page.wait("#{ROWS}.length === 2")

    assert_equal ["GET /hang/0", "GET /hang/1"], page.evaluate(ROWS).sort
    page.wait("document.getElementById('busy').textContent === '2'")
    assert_equal ["all busy", "all busy"], page.evaluate("[...document.querySelectorAll('#workers .state')].map(state => state.textContent)")
    page.click("#running button")
    page.wait("document.querySelector('#running pre').textContent.includes('wait_for_ever')")
    quiet(page)
  end

  def test_a_phone_shows_it_without_scrolling_sideways_and_the_keyboard_is_enough
    page = dashboard(hung("-w", 2), **PHONE)
    page.wait("#{ROWS}.length === 2")
    assert_equal 360, page.evaluate("document.documentElement.scrollWidth")
    first = page.evaluate("#{ROWS}[0]")
    press_until(page, "Tab") { page.evaluate(FOCUSED) == first }
    assert_equal "solid", page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    page.press(":focus", "Enter")
    page.wait("document.querySelector('#running pre').textContent.includes('wait_for_ever')")
    page.wait("document.querySelector('#link').textContent === 'live'")

    assert_equal first, page.evaluate(FOCUSED), "new snapshots leave the focus alone"
    page.press(":focus", "Tab")
    assert_equal "PRE", page.evaluate("document.activeElement.tagName")
    page.press(":focus", "Shift+Tab")
    page.press(":focus", "Enter")
    assert page.evaluate("document.querySelector('#running pre').hidden")
    quiet(page)
  end

  def test_a_path_is_text_and_never_html
    server = serve(APP, "-t", "1:1", *FLAGS)
    connect(server).write("GET /hang/<img/src=x/onerror=alert(1)> HTTP/1.1\r\nhost: a\r\n\r\n")
    page = dashboard(server)
    page.wait("#{ROWS}.length === 1")

    assert_equal ["GET /hang/<img/src=x/onerror=alert(1)>"], page.evaluate(ROWS)
    assert_equal 0, page.evaluate("document.images.length")
    quiet(page)
  end

  def press_until(page, key)
    pressed = (1..20).find do
      page.press("body", key)
      yield
    end
    refute_nil pressed, "not reached with #{key}"
  end

  def test_a_process_that_is_stopped_is_described_by_the_kernel
    server = hung("-w", 1, threads: 1)
    pause_processes([server.serving_pid])
    page = dashboard(server)
    page.wait("#{ROWS}.length === 1")
    page.click("#running button")

    page.wait("/Ruby does not answer.*stopped/s.test(document.querySelector('#running pre').textContent)")
  ensure
    resume_processes([server.serving_pid])
  end

  def test_without_workers_the_only_process_is_shown
    server = hung(threads: 1)
    page = dashboard(server)
    page.wait("#{ROWS}.length === 1")

    assert_equal ["only"], page.evaluate("[...document.querySelectorAll('#workers th')].map(name => name.textContent)")
    page.click("#running button")
    page.wait("document.querySelector('#running pre').textContent.includes('wait_for_ever')")
    server.write("go", "")
    page.wait("document.querySelector('#running .time').textContent === 'ended'")
    page.click("#running button")
    page.wait("document.querySelectorAll('#running li').length === 0")
  end

  def test_the_token_can_be_typed
    server = serve(APP, *FLAGS)
    page = browse(state(server)["control_url"].sub("tcp:", "http:"))
    page.wait("document.activeElement.id === 'token'")
    page.fill("#token", "wrong")
    page.press("#token", "Enter")
    page.wait("document.getElementById('login-reason').textContent.includes('refuses')")
    page.fill("#token", TOKEN)
    page.press("#token", "Enter")
    page.wait("document.getElementById('state').textContent === 'ready'")
    page.reload

    page.wait("document.getElementById('state').textContent === 'ready'")
    assert page.evaluate("document.getElementById('login').hidden")
  end

  def test_restarts_are_shown_and_keep_the_history
    port = TCPServer.open("127.0.0.1", 0) { |listener| listener.addr[1] }
    server = serve(APP, "-w", 1, *FLAGS, "--control-url", "tcp://127.0.0.1:#{port}")
    page = dashboard(server)
    page.wait("points.length > 1")
    first = page.evaluate("points[0][AT]")
    { "phased-restart" => "phased: done", "restart" => "hot: done" }.each do |command, shown|
      command(server, command)
      page.wait("[...document.querySelectorAll('#server dd')].some(text => text.textContent === '#{shown}')")
    end

    page.wait("document.getElementById('link').textContent === 'live'")
    assert_equal first, page.evaluate("points[0][AT]")
  end

  def test_the_command_shows_it_without_the_token
    server = hung("-w", 1, threads: 1)
    with_ctl_dashboard(server) do |address|
      refute_includes address, TOKEN
      page = browse(address)
      page.wait("#{ROWS}.length === 1")
      page.click("#running button")
      page.wait("document.querySelector('#running pre').textContent.includes('wait_for_ever')")
      quiet(page)
    end
  end

  def with_ctl_dashboard(server)
    IO.popen([RbConfig.ruby, "-I", File.join(ROOT, "lib"), File.join(ROOT, "exe/fairlead"), "ctl", "-S", server.path(STATE), "dashboard"]) do |io|
      assert io.wait_readable(20)
      yield io.gets.chomp
    ensure
      Process.kill(:INT, io.pid)
    end
  end
end
