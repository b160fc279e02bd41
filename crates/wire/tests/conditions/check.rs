//! Properties of every request; the random tests and a fuzz target use them.

#[path = "model.rs"]
pub(crate) mod model;

use fairlead_wire::conditions::{evaluate, permits_range, Outcome, Validators};
use fairlead_wire::Head;

/// Checks the result of a request's conditions against the model. Returns the status of the response.
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

/// Checks against the model if a request may get a range, and returns the result.
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
