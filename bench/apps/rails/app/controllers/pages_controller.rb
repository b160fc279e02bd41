# frozen_string_literal: true

# The pages of the benchmark that no generator makes.
class PagesController < ApplicationController
  # 100 notes, each rendered by the partial that the scaffold has made for it.
  def list
    @notes = Note.order(:id).limit(100)
  end

  def json
    render json: Note.order(:id).limit(20)
  end

  # Computes 200 ms of processor time and keeps nothing of it.
  def report
    finished = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.2
    sum = 0
    sum += sum.to_s.sum while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finished
    render plain: "#{sum}\n"
  end
end
