# frozen_string_literal: true

# A Rails application for comparing the responses of Puma and Fairlead. Its responses do not differ from run to run: cookies
# are signed, not encrypted, and the client names the request.

require "logger"
require "rails"
require "action_controller/railtie"

class Shop < Rails::Application
  config.load_defaults 6.1
  config.eager_load = true
  config.hosts.clear
  config.secret_key_base = "0123456789abcdef" * 8
  config.consider_all_requests_local = false
  config.logger = Logger.new(File::NULL)
  config.root = Dir.pwd
end

Shop.initialize!

# With this field, Rails does not buffer a response to compute an etag.
MODIFIED = Time.utc(2026).httpdate

class ItemsController < ActionController::Base
  include ActionController::Live

  skip_forgery_protection

  def live
    response.headers.merge!("Content-Type" => "text/event-stream", "Last-Modified" => MODIFIED)
    3.times { |n| response.stream.write("data: #{n}\n\n") }
  ensure
    response.stream.close
  end
end

class PagesController < ActionController::Base
  skip_forgery_protection

  def page = render(html: "<p>Gr\u00fc\u00dfe</p>".html_safe)
  def json = render(json: { params: request.query_parameters, body: request.request_parameters, path: request.fullpath, url: request.url })

  def cookies_set
    cookies.signed[:a] = cookies.signed[:b] = "1"
    head :ok
  end

  def nothing = head(:no_content)
  def back = redirect_to("/page")
  def fresh = fresh_when(etag: "1", last_modified: Time.utc(2026))

  def pieces
    response.headers["Last-Modified"] = MODIFIED
    self.response_body = Enumerator.new { |pieces| 3.times { |n| pieces << n.to_s } }
  end

  def download = send_file(Rails.root.join("letters.txt"), type: "text/plain")
  def data = send_data("abc" * 100, filename: "data.bin")
  def fail = raise("oops")
end

Shop.routes.draw do
  get "live", to: "items#live"
  post "json", to: "pages#json"
  get "cookies", to: "pages#cookies_set"
  %w[page json nothing back fresh pieces download data fail].each { |name| get name, to: "pages##{name}" }
  get "probe", to: ->(_) { [200, { "content-type" => "text/plain" }, ["the connection was kept"]] }
end

run Shop
