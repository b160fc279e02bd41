# frozen_string_literal: true

# A line on the board, which all pages show as soon as it is there.
class Note < ApplicationRecord
  broadcasts_to ->(_note) { "board" }, inserts_by: :append, target: "notes"
end
