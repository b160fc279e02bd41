# frozen_string_literal: true

require "erb"
require "openssl"
require "rack"

# GET / lists the reports, each with a secret link; GET /reports/NAME?key=… returns one of them. The application decides who
# gets a file and under which name, and the server sends it.
class Reports
  # Name of the folder in config/fairlead.rb. Clients never see it.
  INTERNAL = "/internal/"

  # +secret+: the keys depend on it.
  def initialize(folder, secret)
    @folder = folder
    @secret = secret
  end

  def call(env)
    path, query = env.values_at("PATH_INFO", "QUERY_STRING")
    return page if path == "/"

    name = names.find { |one| path == "/reports/#{escape(one)}" }
    return [404, {}, []] unless name # the server adds the page public/404.html
    return answer(403, "<p>This link is not valid.</p>") unless Rack::Utils.secure_compare("key=#{key(name)}", query)

    send_report(name)
  end

  private

  def send_report(name)
    [200, { "x-accel-redirect" => INTERNAL + escape(name), "content-disposition" => "attachment", "cache-control" => "private" }, []]
  end

  def page
    links = names.map { |name| "<li><a href=\"reports/#{escape(name)}?key=#{key(name)}\">#{ERB::Util.html_escape(name)}</a>" }
    answer(200, "<ul>#{links.join}</ul>")
  end

  def answer(status, content)
    page = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Reports</title>" \
           "<link rel=\"stylesheet\" href=\"/assets/reports-b9d1c2f0.css\"><main><h1>Reports</h1>#{content}</main></html>\n"
    [status, { "content-type" => "text/html; charset=utf-8" }, [page]]
  end

  def names = Dir.children(@folder).sort

  def key(name) = OpenSSL::HMAC.hexdigest("SHA256", @secret, name)

  def escape(name) = ERB::Util.url_encode(name)
end
