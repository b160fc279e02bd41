# frozen_string_literal: true

# Does a certificate cost the other hosts anything?
Bench::Scenario.define(
  "growth-certificates",
  about: "A server with n certificates, each for a host: CPU time of a full handshake for one of the hosts, of the start and of a reload.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
  drive: Bench::Drive::Growth.new(Bench::Growth::HostCertificates.new, things: "certificates"),
  ways: { app: "/", public: "/short" },
  only: %w[fairlead nginx],
  tls: { nil => Bench::Tls.new(certificate: "ECDSA P-256") },
  shapes: %w[1x5:100],
  metrics: [],
  plots: %w[growth]
)
