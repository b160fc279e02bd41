# frozen_string_literal: true

# Information about the server.
class ServerController < ApplicationController
  def software = render(plain: request.env["SERVER_SOFTWARE"])

  # Version of the code, and the process.
  def version = render(plain: "#{Rails.configuration.x.version} #{Process.pid}")

  def hints
    request.send_early_hints("Link" => "</application.css>; rel=preload; as=style")
    render plain: "hinted"
  end
end
