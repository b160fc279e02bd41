# frozen_string_literal: true

require "io/wait"
require "json"
require "tempfile"
require "support/waiting"

module Fairlead
  module Test
    # A real Chromium, driven by driver.mjs: one for all tests of a run, a new user for each page.
    #
    #   page = Browser.instance.open("http://127.0.0.1:9292/")
    #   page.fill("#name", "Ada")
    #   page.click("text=Come in")
    #   page.wait("document.title === '#lobby'")
    class Browser
      # The browser, the driver or the page has failed.
      class Failed < StandardError; end

      FOLDER = File.expand_path("..", __dir__)
      PATIENCE = 30 # seconds, for a page; a browser is slow on a busy machine
      SECONDS = 60  # for a reply of the driver, which waits as long for the page

      class << self
        def instance
          @instance ||= new.tap { |browser| Minitest.after_run { browser.quit } }
        end

        # Returns the reason why no browser can run here; nil if one can.
        def missing
          return "chromium is not installed" unless executable
          return "node is not installed" unless executable("node")

          "node_modules is missing; bin/setup --browser installs it" unless File.directory?(File.join(FOLDER, "node_modules"))
        end

        # Path of a program; nil if it is not installed.
        def executable(name = "chromium")
          ENV.fetch("PATH").split(File::PATH_SEPARATOR).map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) }
        end
      end

      # +flags+: of Chromium.
      def initialize(*flags)
        @errors = Tempfile.create("chromium")
        @driver = IO.popen(["node", File.join(__dir__, "driver.mjs"), self.class.executable, *flags], "r+", err: @errors)
        @pages = []
        @opened = 0
      end

      # Opens the address as a new user. +prompted+: the reply to every prompt(). +options+: options of a context of
      # Playwright, such as colorScheme.
      def open(url, prompted: nil, **options)
        name = (@opened += 1).to_s
        @pages << (page = Page.new(self, name))
        page.command("open", url: url, prompted: prompted, options: options)
        page
      end

      def version = command("version")

      # Closes the open pages.
      def close_pages
        @pages.each(&:close)
        @pages.clear
      end

      def command(name, **details)
        @driver.puts(JSON.generate(do: name, **details))
        raise Failed, "#{name}: no response within #{SECONDS} s" unless @driver.wait_readable(SECONDS)

        line = @driver.gets or raise Failed, "the driver has ended\n#{File.read(@errors)}"
        answer = JSON.parse(line)
        raise Failed, "#{name} #{details}: #{answer["error"]}" if answer["error"]

        answer["value"]
      rescue Errno::EPIPE
        raise Failed, "the driver has ended\n#{File.read(@errors)}"
      end

      # The driver ends the browser when its input ends.
      def quit
        @driver.close_write
        @driver.wait_readable(SECONDS) || Process.kill(:KILL, @driver.pid)
        @driver.close
      ensure
        @errors.close
        File.unlink(@errors)
      end

      # A user's window. Every wait has a deadline, the driver's.
      class Page
        include Waiting

        def initialize(browser, name)
          @browser = browser
          @name = name
          @open = true
        end

        def open? = @open

        # Closes the window, and removes the user.
        def close
          command("close") if @open
          @open = false
        end

        def fill(selector, text) = command("fill", selector: selector, text: text)
        def click(selector) = command("click", selector: selector)
        def press(selector, key) = command("press", selector: selector, key: key)
        def reload = command("reload")

        # Value of the JavaScript expression. Waits for a promise.
        def evaluate(script) = command("evaluate", script: script)

        # Waits until the JavaScript expression is true (0 and "" are not), and returns its value. Evaluates it repeatedly
        # from here: a page with a policy against eval() cannot watch for it by itself.
        def wait(script) = wait_until(script, seconds: PATIENCE) { evaluate("(#{script}) || null") }

        # Console output, and uncaught exceptions.
        def said = command("said")

        def screenshot(path) = command("screenshot", path: path)

        def command(name, **details) = @browser.command(name, page: @name, **details)
      end
    end
  end
end
