# frozen_string_literal: true

# An application that sleeps and computes, as STEPS says: path => [[:sleep, seconds], [:compute, seconds], …]. The scenario adds
# STEPS behind this text.

# Computes until this thread has used so much processor time: what others compute meanwhile does not count.
def compute(seconds)
  finished = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
  nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finished
end

run(lambda do |env|
  STEPS.fetch(env["PATH_INFO"], []).each { |what, seconds| what == :sleep ? sleep(seconds) : compute(seconds) }
  [200, { "content-type" => "text/plain", "content-length" => "5" }, ["done\n"]]
end)
