//! What must hold for any request whatsoever; used by the random tests and by a fuzz target.

#[path = "model.rs"]
pub(crate) mod model;

use fairlead_wire::conditions::{evaluate, permits_range, Outcome, Validators};
use fairlead_wire::Head;

/// Checks the verdict on the conditions of a request against the model. Tells the status it stands for.
pub(crate) fn conditions(head: &Head, bytes: &[u8], file: &Validators<'_>) -> u16 {
    let outcome = match evaluate(head, bytes, file) {
        Outcome::Proceed => 200,
        Outcome::NotModified => 304,
        Outcome::Failed => 412,
    };
    let expected = match head.method.of(bytes) {
        b"GET" | b"HEAD" => model::status(&fields(head, bytes), file.etag, file.modified),
        _ => 200,
    };
    assert_eq!(outcome, expected, "{} for {file:?}", bytes.escape_ascii());
    outcome
}

/// Checks against the model whether a request may get a range, and tells it.
pub(crate) fn if_range(head: &Head, bytes: &[u8], file: &Validators<'_>) -> bool {
    let permitted = permits_range(head, bytes, file);
    let expected = model::range_permitted(&fields(head, bytes), file.etag, file.modified);
    assert_eq!(permitted, expected, "{} for {file:?}", bytes.escape_ascii());
    permitted
}

fn fields(head: &Head, bytes: &[u8]) -> model::Fields {
    let field = |field: &fairlead_wire::Field| {
        let name = String::from_utf8_lossy(field.name.of(bytes)).to_ascii_lowercase();
        (name, field.value.of(bytes).to_vec())
    };
    head.fields.iter().map(field).collect()
}
