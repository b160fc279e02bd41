# frozen_string_literal: true

# All subscribers of the room get its messages.
class RoomChannel < ApplicationCable::Channel
  def subscribed = stream_from("room")

  def speak(data) = ActionCable.server.broadcast("room", { text: data["text"], pid: Process.pid })
end
