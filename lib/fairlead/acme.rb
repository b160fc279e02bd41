# frozen_string_literal: true

module Fairlead
  # Certificates from an authority that speaks ACME (RFC 8555), such as Let's Encrypt, ordered and renewed automatically.
  #
  #   the schedule ── in the supervisor (crates/supervisor/src/acme): knows when something is due, and tells about it
  #     │ asks for work
  #     ▼
  #   Clerk ── in the current spawner, or the sole process: looks at files (Kept), starts a Job or a Question, answers with facts
  #     ▼
  #   Issuance ── one order ── Program ── a native process that speaks with the authority (crates/acme), and ends with the order
  #     │ writes
  #     ▼
  #   Store ── a folder: accounts, certificates, and answers to challenges, which the workers read (crates/engine/src/acme.rs)
  #
  # The option `acme` makes each Order. No process that serves ever speaks to the authority or waits for it.
  module Acme
    autoload :Order, "fairlead/acme/order"
    autoload :Store, "fairlead/acme/store"
    autoload :Certificate, "fairlead/acme/certificate"
    autoload :Bundle, "fairlead/acme/bundle"
    autoload :Shown, "fairlead/acme/shown"
    autoload :Failure, "fairlead/acme/failure"
    autoload :Problem, "fairlead/acme/problem"
    autoload :Question, "fairlead/acme/question"
    autoload :Clerk, "fairlead/acme/clerk"
    autoload :Kept, "fairlead/acme/kept"
    autoload :Job, "fairlead/acme/job"
    autoload :Program, "fairlead/acme/program"
    autoload :Issuance, "fairlead/acme/issuance"
    autoload :Account, "fairlead/acme/account"
    autoload :Answers, "fairlead/acme/answers"
    autoload :Authority, "fairlead/acme/authority"
    autoload :SigningRequest, "fairlead/acme/signing_request"

    # Ways to prove to the authority that we own a host: a response to a request, or a certificate in a handshake.
    CHALLENGES = %w[http-01 tls-alpn-01].freeze
  end
end
