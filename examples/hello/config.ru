# frozen_string_literal: true

# The smallest application there is: one answer for every request.
run ->(_env) { [200, { "content-type" => "text/plain; charset=utf-8" }, ["Hello from Fairlead!\n"]] }
