# frozen_string_literal: true

# A page with a Turbo stream.
class BoardsController < ApplicationController
  skip_forgery_protection only: :script

  # With the parameter `late`, a note is made after the page was rendered and before the browser has it.
  def show
    @notes = Note.order(:id)
    render
    Note.create!(text: params[:late]) if params[:late]
  end

  def create
    Note.create!(text: params.require(:text))
    head :no_content
  end

  # Turbo with its client of Action Cable.
  def script
    send_file(Turbo::Engine.root.join("app/assets/javascripts/turbo.js"), type: "text/javascript", disposition: "inline")
  end
end
