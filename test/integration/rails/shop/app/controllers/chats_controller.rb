# frozen_string_literal: true

# A page whose script talks to Action Cable.
class ChatsController < ApplicationController
  skip_forgery_protection only: :script

  def show; end

  # The client that comes with Action Cable; its name differs between versions.
  def script
    folder = ActionCable::Engine.root.join("app/assets/javascripts")
    send_file(%w[actioncable.js action_cable.js].map { |name| folder.join(name) }.find(&:file?), type: "text/javascript", disposition: "inline")
  end
end
