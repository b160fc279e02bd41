# frozen_string_literal: true

require "test_helper"

# Base of the generated system tests. Only the name selects the server; Bundler has loaded the gem.
class ApplicationSystemTestCase < ActionDispatch::SystemTestCase
  Capybara.server = :fairlead

  driven_by(:selenium, using: :headless_chrome, screen_size: [1400, 1400]) do |options|
    %w[--no-sandbox --disable-gpu --disable-dev-shm-usage].each { |flag| options.add_argument(flag) }
  end

  # Logs the server that has responded.
  teardown { Rails.logger.info("answered by #{server_name}") }

  private

  def server_name = Net::HTTP.get(URI("#{page.server.base_url}/server"))
end
