# frozen_string_literal: true

# The smallest possible application: the same response for every request.
run ->(_env) { [200, { "content-type" => "text/plain; charset=utf-8" }, ["Hello from Fairlead!\n"]] }
