# frozen_string_literal: true

# Does an idle connection cost the active ones anything, and how much memory?
# A process of the server with 20,000 descriptors takes 14,000 connections.
many = [14_000, 30_000]
idle = lambda do |name, things, kind, more_counts: [], **more|
  Bench::Scenario.define(
    "growth-idle-#{name}",
    about: "n idle #{things} beside one active client: CPU time of its requests, of opening and closing connections, and memory.",
    drive: Bench::Drive::Growth.new(Bench::Growth::Idle.new(kind), things: "idle #{things}", counts: [*Bench::Drive::Growth::COUNTS, *more_counts]),
    arguments: Bench::Growth::PATIENT,
    ways: { app: "/", public: "/short" },
    shapes: ["1x5:#{more_counts.last || 10_000}"],
    metrics: [],
    plots: %w[growth],
    **more
  )
end
growth = File.read(File.join(Bench::ROOT, "bench/apps/growth.ru"))

idle.call("http1", "connections", :kept, more_counts: many, app: growth, only: %w[fairlead nginx puma iodine])
idle.call("tls", "TLS connections", :kept, app: growth, only: %w[fairlead nginx puma], tls: { nil => Bench::Tls.new(certificate: "ECDSA P-256") })
idle.call("http2", "HTTP/2 connections", :http2, app: growth, only: %w[fairlead nginx], http2: :only)
idle.call("websocket", "WebSockets", :websocket, more_counts: many, only: %w[fairlead iodine puma-faye])
idle.call("events", "event streams", :events, only: %w[fairlead iodine puma-faye])
