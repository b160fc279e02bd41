//! Rack Push: the env offers an upgrade to the application, which accepts it by leaving a handler there and returning a
//! status below 300. The server sends the header fields of that response, and only closes its body.

use super::callbacks::resolve;
use super::client;
use crate::objects::{get, set};
use crate::rack::{write_fields, OnThread, Response, Stop};
use crate::strings::{ids, strings};
use fairlead_engine::Protocol;
use rb_sys::{rb_ary_store, rb_id2sym, Qfalse, VALUE};

/// From this status on a response refuses the upgrade.
const REFUSAL: i64 = 300;

/// Values that are needed to accept an upgrade, besides the response.
#[derive(Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) env: VALUE,
    /// The engine's list of clients.
    pub(crate) clients: VALUE,
}

impl OnThread<'_> {
    /// Tells the application that the client asks for an upgrade. Inside `protect`.
    pub(crate) fn offer_upgrade(&self, env: VALUE, protocol: Protocol, response: &Response<'_, '_>) {
        let name = match protocol {
            Protocol::WebSocket => ids().websocket,
            _ => ids().sse,
        };
        // SAFETY: the GVL is held, and the name is one of this crate.
        let name = unsafe { rb_id2sym(name) };
        set(self.ruby, env, strings().rack_upgrade_p, name);
        response.offer.set(Some(Offer {
            env,
            clients: self.app.clients,
        }));
    }
}

/// Upgrades if the application has accepted; false if the response is an ordinary one. Inside `protect`.
pub(crate) fn accept(response: &Response<'_, '_>, status: i64) -> Result<bool, Stop> {
    let Some(offer) = response.offer.get() else {
        return Ok(false);
    };
    let handler = match get(response.ruby, offer.env, strings().rack_upgrade) {
        Some(handler) if handler != Qfalse as VALUE && status < REFUSAL => handler,
        _ => return Ok(false),
    };
    let (handler, callbacks) = resolve(response.ruby, handler);
    if !response.with(|exchange| exchange.start_upgrade()) {
        return Ok(false);
    }
    write_fields(response)?;
    let Some(client) = response.with(|exchange| exchange.end_upgrade()) else {
        return Ok(false);
    };
    let place = client.place();
    let object = client::new(response.ruby, client, offer.env, handler, callbacks);
    // SAFETY: a marked Array, a live object.
    unsafe { rb_ary_store(offer.clients, place as _, object) };
    Ok(true)
}
