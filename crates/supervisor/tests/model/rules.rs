//! The rules for every state and every step.

use crate::world::{Move, Phase, World, BASE};
use fairlead_supervisor::machine::{Action, Command, Notice, ProcessId, Server, WorkerView};
use fairlead_supervisor::machine::{RestartKind, RestartStatus};
use std::collections::BTreeSet;

/// Checks a step. `most`: the largest number of workers in any configuration; `least`: the smallest. `unharmed`: there
/// was no fault.
pub(crate) fn check(
    before: &World,
    made: &Move,
    actions: &[Action],
    after: &World,
    most: usize,
    least: usize,
    unharmed: bool,
) -> Result<(), String> {
    known(after)?;
    if unharmed && before.only_warms && after.faults == before.faults {
        leaves_requests_alone(before, made, actions)?;
    }
    if unharmed && *made == Move::Time {
        awaits_no_long_drain(before)?;
    }
    retires_in_bounds(after, most)?;
    limits_patience(before, actions, after)?;
    bounded(after, most)?;
    ends_in_time(after)?;
    keeps_serving(before, made, actions, after, least)?;
    recycles_after_the_replacement_serves(actions, after)?;
    promotes_after_the_substitute_serves(actions, after)?;
    takes_over(before, made, actions)?;
    answered(before, made, actions, after)
}

/// No request is aborted, unless it has taken a day.
fn leaves_requests_alone(before: &World, made: &Move, actions: &[Action]) -> Result<(), String> {
    let had_a_day =
        |id: &ProcessId| *made == Move::Time && before.processes.get(id).is_some_and(|process| process.patient);
    let aborts = |action: &&Action| match action {
        Action::Drain(..) | Action::EndWorker(..) | Action::StopWorker(_) => true,
        Action::Kill(id) => !had_a_day(id),
        _ => false,
    };
    match actions.iter().find(aborts) {
        Some(action) => Err(format!("{action:?} in an automatic refork")),
        None => Ok(()),
    }
}

/// Every process is known until it has ended.
fn known(world: &World) -> Result<(), String> {
    let machine = &world.machine;
    let known: BTreeSet<_> = machine
        .workers()
        .map(|one| one.id)
        .chain(machine.spawners().map(|one| one.id))
        .collect();
    let ended = machine.server() == Server::Ended;
    for (id, process) in &world.processes {
        let abandoned = process.dead() && process.hung;
        if !known.contains(id) && !abandoned {
            return Err(format!("process {id} is forgotten: {process:?}"));
        }
        if ended && !abandoned {
            return Err(format!("process {id} is left: {process:?}"));
        }
    }
    Ok(())
}

fn bounded(world: &World, most: usize) -> Result<(), String> {
    let workers: Vec<_> = world.machine.workers().collect();
    let staying = workers.iter().filter(|worker| !worker.ending).count();
    if staying > most + 1 {
        return Err(format!("{staying} workers"));
    }
    let slots: BTreeSet<_> = workers.iter().map(|worker| worker.slot).collect();
    if slots.len() != workers.len() {
        return Err("two workers in one slot".to_owned());
    }
    let numbers: Vec<_> = world
        .machine
        .spawners()
        .filter(|one| !one.ending)
        .map(|one| one.generation)
        .collect();
    if numbers.iter().collect::<BTreeSet<_>>().len() != numbers.len() {
        return Err("two spawners of one generation".to_owned());
    }
    match world.machine.spawners().filter(|one| !one.ending && !one.ready).count() {
        0..=2 => Ok(()),
        count => Err(format!("{count} spawners load")),
    }
}

/// A restart that only waits for time to pass waits for a start, or for a short drain.
fn awaits_no_long_drain(world: &World) -> Result<(), String> {
    let machine = &world.machine;
    let replaces = machine.restart().is_some_and(|one| one.state == RestartStatus::Running)
        && machine.server() == Server::Serving
        && machine.workers().all(|one| one.settled || one.retires)
        && machine.spawners().all(|one| one.ready || one.ending);
    match replaces && machine.workers().any(|one| one.retires) {
        true => Err("a restart waits for a long drain".to_owned()),
        false => Ok(()),
    }
}

/// A restart that is asked for ends the workers, too, that an automatic refork has left.
fn limits_patience(before: &World, actions: &[Action], after: &World) -> Result<(), String> {
    let was_asked = before.machine.restart().is_some_and(|restart| !restart.patient);
    let done = |action: &Action| was_asked && matches!(action, Action::Log(Notice::RestartDone { .. }));
    let usual = after.machine.limits().shutdown_timeout;
    let patient = |one: &WorkerView| {
        after
            .processes
            .get(&one.id)
            .is_some_and(|process| process.patience > usual)
    };
    match after.machine.workers().find(patient) {
        Some(worker) if actions.iter().any(done) => Err(format!("worker {} has a day after a restart", worker.id)),
        _ => Ok(()),
    }
}

/// Old workers do not pile up, and the end of the server does not wait for long.
fn retires_in_bounds(world: &World, most: usize) -> Result<(), String> {
    let retiring = world.machine.workers().filter(|one| one.retires).count();
    if retiring > most + 1 {
        return Err(format!("{retiring} workers retire"));
    }
    match world.machine.server() {
        Server::Draining | Server::Stopping if retiring > 0 => Err("the end waits for a long drain".to_owned()),
        _ => Ok(()),
    }
}

fn ends_in_time(world: &World) -> Result<(), String> {
    match world.end_by {
        Some(end_by) if end_by < BASE => Err("the server did not end in time".to_owned()),
        _ => Ok(()),
    }
}

/// Serving workers are asked to end only while enough others serve.
fn keeps_serving(before: &World, made: &Move, actions: &[Action], after: &World, least: usize) -> Result<(), String> {
    let stops = matches!(
        after.machine.server(),
        Server::Draining | Server::Stopping | Server::Ended
    );
    let drains = |action: &Action| matches!(action, Action::Drain(..) | Action::DrainPatiently(..));
    let drained = actions.iter().any(drains);
    let hung = actions.iter().any(|action| matches!(action, Action::GiveUp(_)));
    // The previous program has no serving worker left, but only it can start others.
    let machine = &before.machine;
    let borrowed = |one: &WorkerView| machine.borrows(one.generation) && one.booted && !one.ending;
    let returns = machine.is_guest() && !machine.workers().any(|one| borrowed(&one));
    if stops || !drained || hung || returns || matches!(made, Move::Ask(Command::RemoveWorker)) {
        return Ok(());
    }
    // A worker that becomes a spawner serves no more.
    let serves = |world: &World, one: &WorkerView| {
        let promoting = world.processes.get(&one.id).map(|process| process.phase) == Some(Phase::Promoting);
        one.booted && !one.ending && !promoting
    };
    let serving = |world: &World| world.machine.workers().filter(|one| serves(world, one)).count();
    let enough = least.max(2) - 1;
    let (was, is) = (serving(before), serving(after));
    if is < was && is < enough {
        return Err(format!("{was} workers served, and {is} are left"));
    }
    Ok(())
}

/// A worker becomes the spawner only while another worker serves under its index.
fn promotes_after_the_substitute_serves(actions: &[Action], after: &World) -> Result<(), String> {
    let machine = &after.machine;
    for action in actions {
        let Action::Promote(id, ..) = action else { continue };
        let index = machine.workers().find(|one| one.id == *id).map(|one| one.index);
        let replaces = |one: &WorkerView| Some(one.index) == index && one.id != *id && one.settled && !one.ending;
        if !machine.workers().any(|one| replaces(&one)) {
            return Err(format!(
                "worker {id} was promoted, and no other one serves under its index"
            ));
        }
    }
    Ok(())
}

/// A recycled worker ends only while another worker serves under its index.
fn recycles_after_the_replacement_serves(actions: &[Action], after: &World) -> Result<(), String> {
    for action in actions {
        let Action::Log(Notice::WorkerRecycled { worker, .. }) = action else {
            continue;
        };
        let replaces = |one: &WorkerView| one.index == worker.index && one.booted && !one.ending;
        if !after.machine.workers().any(|one| replaces(&one)) {
            return Err(format!("worker {} was recycled without a replacement", worker.index));
        }
    }
    Ok(())
}

/// An automatic refork, which may take a day, refuses no refork that is asked for.
fn takes_over(before: &World, made: &Move, actions: &[Action]) -> Result<(), String> {
    let restart = before.machine.restart();
    let is_automatic = restart.is_some_and(|restart| restart.patient && restart.state == RestartStatus::Running);
    let is_asked = *made == Move::Ask(Command::Restart(RestartKind::Refork));
    let is_refused = |action: &Action| matches!(action, Action::Refuse(reason) if reason.contains("restart"));
    match is_automatic && is_asked && actions.iter().any(is_refused) {
        true => Err("an automatic refork refuses a refork".to_owned()),
        false => Ok(()),
    }
}

/// A command changes the state, or is refused.
fn answered(before: &World, made: &Move, actions: &[Action], after: &World) -> Result<(), String> {
    let Move::Ask(command) = made else { return Ok(()) };
    let refused = actions.iter().any(|action| matches!(action, Action::Refuse(_)));
    let repeated = match command {
        Command::Stop { .. } | Command::Halt(_) => before.end_by.is_some(),
        // The restart is pending already, or one of a higher kind.
        Command::Restart(kind) => before.machine.pending() >= Some(*kind),
        _ => false,
    };
    if refused || repeated || before.machine != after.machine {
        return Ok(());
    }
    Err("a command is lost".to_owned())
}

/// The final state if no more faults happen: the server has ended, or runs normally.
pub(crate) fn goal(world: &World) -> bool {
    let healthy = world.processes.values().all(|one| match one.phase {
        Phase::Serving | Phase::Ready => !one.hung && !one.asked && one.spent.is_none(),
        Phase::Dead(_) => one.hung,
        _ => false,
    });
    world.finished || (world.machine.at_rest() && healthy)
}
