# frozen_string_literal: true

# A restart of the workers, and the end, with clients.
endings = lambda do |name, things, kind, **more|
  Bench::Scenario.define(
    "growth-endings-#{name}",
    about: "A restart of both workers, and then the end of the server, with n idle #{things}: time, CPU time in all, highest memory.",
    drive: Bench::Drive::Growth.new(Bench::Growth::Endings.new(kind), things: "idle #{things}"),
    arguments: Bench::Growth::PATIENT,
    ways: { app: "/", public: "/short" },
    shapes: %w[2x5:10000],
    metrics: [],
    plots: %w[growth],
    **more
  )
end
growth = File.read(File.join(Bench::ROOT, "bench/apps/growth.ru"))

endings.call("http1", "connections", :kept, app: growth, only: %w[fairlead nginx puma-no-preload], memory: true)
endings.call("tls", "TLS connections", :kept, app: growth, only: %w[fairlead nginx], tls: { nil => Bench::Tls.new(certificate: "ECDSA P-256") })
endings.call("http2", "HTTP/2 connections", :http2, app: growth, only: %w[fairlead nginx], http2: :only)
endings.call("websocket", "WebSockets", :moving_websocket, app: growth, only: %w[fairlead])
endings.call("events", "event streams", :moving_events, app: growth, only: %w[fairlead])
