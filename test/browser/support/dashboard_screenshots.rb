# frozen_string_literal: true

# Takes the pictures of docs/guides/dashboard.md: runs a server under load for that many minutes, and opens its dashboard.
#
#   ruby -I lib -I test test/browser/support/dashboard_screenshots.rb [MINUTES]

require "fairlead"
require "net/http"
require "support/control"
require "support/server_process"
require_relative "browser"

module Fairlead
  module Test
    # The pictures, and the server in them.
    class DashboardScreenshots
      include Controlled

      ROOT = File.expand_path("../../..", __dir__)
      FOLDER = File.join(ROOT, "docs/images")

      APP = <<~RUBY
        TIMES = { "/products" => 0.004, "/cart" => 0.012, "/search" => 0.03 }.freeze
        run lambda { |env|
          path = env["PATH_INFO"]
          sleep(path.start_with?("/reports") ? 3600 : TIMES.fetch(path, 0.002) * (0.5 + rand + (rand < 0.03 ? 8 : 0)))
          [200, { "content-type" => "text/plain" }, ["hello"]]
        }
      RUBY

      WIDE = { viewport: { width: 1400, height: 1200 } }.freeze
      NARROW = { viewport: { width: 360, height: 1500 } }.freeze
      PICTURES = {
        "dashboard-light.png" => [{ colorScheme: "light", **WIDE }, true], "dashboard-dark.png" => [{ colorScheme: "dark", **WIDE }, false],
        "dashboard-phone.png" => [{ colorScheme: "light", **NARROW }, false]
      }.freeze

      def take(minutes)
        Thread.report_on_exception = false # the server ends before its clients
        server = ServerProcess.new(APP, "-w", 4, "-t", "3:3", *FLAGS).start
        browser = Browser.new
        load = 6.times.map { |i| Thread.new { visit(server.port, i) } }
        sleep(minutes * 60)
        PICTURES.each { |name, (options, opens)| picture(browser, server, name, options, opens) }
      ensure
        load&.each(&:kill)
        server&.destroy
        browser&.quit
      end

      private

      # A client with visits in waves; some begin with a report that never ends.
      def visit(port, number)
        report = TCPSocket.new("127.0.0.1", port)
        report.write("GET /reports/#{2023 + number} HTTP/1.1\r\nhost: shop\r\n\r\n") if number.even?
        Net::HTTP.start("127.0.0.1", port) do |http|
          loop do
            http.get(%w[/products /products /cart /search].sample)
            sleep(0.01 + (0.04 * (1 + Math.sin((Time.now.to_f / 70) + number))))
          end
        end
      end

      def picture(browser, server, name, options, opens)
        page = browser.open("#{state(server)["control_url"].sub("tcp:", "http:")}/##{TOKEN}", **options)
        page.wait("points.length > 2 && document.querySelectorAll('#running li').length > 2")
        if opens
          page.click("#running button")
          page.wait("document.querySelector('#running pre').textContent.includes('sleep')")
          page.evaluate("document.activeElement.blur()")
          rename(page, server.directory => "/srv/shop", ROOT => "fairlead-0.1.0")
        end
        page.screenshot(File.join(FOLDER, name))
      end

      # Hides the folders of this machine.
      def rename(page, folders)
        folders.each do |own, shown|
          page.evaluate("(trace => trace.textContent = trace.textContent.replaceAll(#{own.to_json}, #{shown.to_json}))" \
                        "(document.querySelector('#running pre'))")
        end
      end
    end
  end
end

Fairlead::Test::DashboardScreenshots.new.take(Float(ARGV.first || 10))
