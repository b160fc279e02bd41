# frozen_string_literal: true

# A page with a script that talks to Action Cable.
class ChatsController < ApplicationController
  skip_forgery_protection only: :script

  def show; end

  # The client of Action Cable; its name differs between versions.
  def script
    folder = ActionCable::Engine.root.join("app/assets/javascripts")
    send_file(%w[actioncable.js action_cable.js].map { |name| folder.join(name) }.find(&:file?), type: "text/javascript", disposition: "inline")
  end
end
