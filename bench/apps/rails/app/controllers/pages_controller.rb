# frozen_string_literal: true

# Pages of the benchmark that no generator creates.
class PagesController < ApplicationController
  # 100 notes, each rendered by the scaffold's partial.
  def list
    @notes = Note.order(:id).limit(100)
  end

  def json
    render json: Note.order(:id).limit(20)
  end

  # Computes for 200 ms of CPU time and discards the result.
  def report
    finished = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.2
    sum = 0
    sum += sum.to_s.sum while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finished
    render plain: "#{sum}\n"
  end
end
