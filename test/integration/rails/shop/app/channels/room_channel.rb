# frozen_string_literal: true

# Whoever is in the room hears what is said.
class RoomChannel < ApplicationCable::Channel
  def subscribed = stream_from("room")

  def speak(data) = ActionCable.server.broadcast("room", { text: data["text"], pid: Process.pid })
end
