# frozen_string_literal: true

require "support/servers"
require_relative "browser"

module Fairlead
  module Test
    # For test cases with a browser: skips them, with the reason, if there is none, closes the pages after each test, and
    # prints the console output if it failed.
    module Browsing
      include Servers

      def before_setup
        super
        skip(Browser.missing) if Browser.missing
        @pages = []
      end

      # Opens the address as a new user; options as Browser#open.
      def browse(url, **options)
        @pages << (page = Browser.instance.open(url, **options))
        page
      end

      # Serves a folder of examples/ with that many workers. +port+: a port that was in use before.
      def example(name, workers:, port: 0)
        serve(nil, "--dir", File.join(ROOT, "examples", name), "-w", workers, bind: "tcp://127.0.0.1:#{port}")
      end

      def after_teardown
        return super unless @pages

        @pages.each_with_index { |page, i| $stderr.puts("--- page #{i}", page.said) if page.open? } unless passed?
        Browser.instance.close_pages
        super
      end
    end
  end
end
