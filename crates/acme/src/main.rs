//! Orders one certificate from an ACME authority (RFC 8555), and ends. The server starts this program for each order.
//! It keeps all state and all decisions to itself, so a hostile authority can only harm this process.
//!
//! The order comes on standard input, as one line of JSON (`input`). Events go to standard output, one line of JSON
//! each (`events`). After the event `answers` the program waits for one more line of input, which says that the
//! challenge responses are in place. Standard input stays open while the server wants the certificate: its end ends the
//! program.
//!
//! `order`: the steps of an order · `client`: requests within limits · `dial`, `trust`: connections, TLS · `problem`:
//! failures.

mod client;
mod dial;
mod events;
mod input;
mod order;
mod problem;
mod trust;

use client::Client;
use events::{Event, Events};
use input::{Input, Task};
use problem::Problem;
use std::io::BufRead;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Signals that a service manager or a terminal sends to all processes of the server; the server decides about them.
const IGNORED: [i32; 3] = [
    signal_hook::consts::SIGHUP,
    signal_hook::consts::SIGINT,
    signal_hook::consts::SIGTERM,
];

fn main() {
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in IGNORED {
        // If an order cannot ignore a signal, the signal ends it.
        let _ = signal_hook::flag::register(signal, Arc::clone(&ignored));
    }
    std::panic::set_hook(Box::new(|_| {
        // The library panics at some invalid addresses.
        Problem::malformed("the authority has sent an invalid response".to_owned()).tell();
        std::process::exit(1);
    }));
    let (lines, input) = mpsc::unbounded_channel();
    std::thread::spawn(move || read(&lines));
    let result = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Problem::new("process", error.to_string()))
        .and_then(|runtime| runtime.block_on(run(Events::new(input))));
    if let Err(problem) = result {
        problem.tell();
    }
    // Exits at once, because other threads may still be looking up names.
    std::process::exit(0);
}

/// Forwards lines of standard input. Its end means that the server no longer wants the certificate.
fn read(lines: &mpsc::UnboundedSender<String>) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let _ = lines.send(line);
    }
    std::process::exit(1);
}

async fn run(mut events: Events) -> Result<(), Problem> {
    let line = events.next().await?;
    let input: Input = serde_json::from_str(&line)
        .map_err(|error| Problem::new("process", format!("the order is invalid: {error}")))?;
    let limit = Duration::from_secs(input.seconds);
    let client = Client::new(&input)?;
    let work = async {
        match input.task {
            Task::Order => order::order(&input, &client, &mut events)
                .await
                .map(|chain| Event::Issued { chain }),
            Task::Renewal => order::renewal(&input, &client).await,
        }
    };
    let result = tokio::time::timeout(limit, work).await;
    let event = result.map_err(|_| {
        Problem::new(
            "timeout",
            format!("the order has taken longer than {} s", limit.as_secs()),
        )
    })?;
    event?.tell();
    Ok(())
}
