//! `--mix`: requests of several kinds.

use super::values::method;
use crate::url::request_path;
use std::collections::HashMap;

/// A higher limit would be of no use, because weights are relative.
const MAX_WEIGHT: u64 = 1_000_000;

/// One kind of request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Weight of this kind, relative to the others.
    pub(crate) weight: u64,
    pub(crate) name: String,
    /// Index of the name among the names of the file. Requests with the same name are reported together.
    pub(crate) kind: usize,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
}

/// Reads a file with one line for each kind: weight, name, method, target, and the rest of the line as the body.
pub(super) fn mix(file: &str) -> Result<Vec<Share>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("--mix: {file}: {error}"))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut shares: Vec<Share> = lines.map(share).collect::<Result<_, _>>()?;
    if shares.is_empty() {
        return Err(format!("--mix: {file} is empty"));
    }
    number_kinds(&mut shares);
    Ok(shares)
}

/// Gives each name the next number where it first occurs.
fn number_kinds(shares: &mut [Share]) {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for share in shares {
        let next = numbers.len();
        share.kind = *numbers.entry(share.name.clone()).or_insert(next);
    }
}

/// The names of a mix, each once, in the order of the file.
pub(crate) fn names(mix: &[Share]) -> Vec<&str> {
    let mut names = Vec::new();
    for share in mix {
        if share.kind == names.len() {
            names.push(share.name.as_str());
        }
    }
    names
}

fn share(line: &str) -> Result<Share, String> {
    let mut words = line.splitn(5, ' ');
    let mut word = || words.next().filter(|word| !word.is_empty());
    let (Some(weight), Some(name), Some(verb), Some(target)) = (word(), word(), word(), word()) else {
        return Err(format!(
            "--mix: each line needs a weight, a name, a method and a target: {line}"
        ));
    };
    let method = method(verb).map_err(|why| format!("--mix: {verb}: {why}"))?;
    if method == "HEAD" {
        return Err("--mix: HEAD cannot be mixed with requests that get content".into());
    }
    let weight = match weight.parse() {
        Ok(number @ 1..=MAX_WEIGHT) => number,
        _ => return Err(format!("--mix: {weight} is not a whole number from 1 to {MAX_WEIGHT}")),
    };
    Ok(Share {
        weight,
        name: name.into(),
        kind: 0,
        method,
        path: request_path(target)?,
        body: word().unwrap_or_default().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_weight_a_name_a_method_a_target_and_perhaps_a_body() {
        let found = share("5 create POST /notes?a=b title=a b").expect("right");
        let expected = Share {
            weight: 5,
            name: "create".into(),
            kind: 0,
            method: "POST".into(),
            path: "/notes?a=b".into(),
            body: b"title=a b".to_vec(),
        };
        assert_eq!(found, expected);
        assert_eq!(share("1 index GET /").expect("right").body, b"");
    }

    #[test]
    fn each_name_has_a_number_where_it_first_occurs() {
        let mut shares: Vec<Share> = ["1 b GET /1", "1 a GET /2", "1 b GET /3", "1 c GET /4"]
            .map(|line| share(line).expect("right"))
            .into();
        number_kinds(&mut shares);
        let kinds: Vec<usize> = shares.iter().map(|share| share.kind).collect();
        assert_eq!((kinds, names(&shares)), (vec![0, 1, 0, 2], vec!["b", "a", "c"]));
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        for (line, reason) in [
            ("1 index GET", "a weight, a name, a method and a target"),
            ("0 index GET /", "--mix: 0"),
            ("often index GET /", "--mix: often"),
            ("1 index G?T /", "method"),
            ("1 index HEAD /", "HEAD"),
        ] {
            let refusal = share(line).expect_err(line);
            assert!(refusal.contains(reason), "{line}: {refusal}");
        }
        assert!(mix("/nowhere/at/all").expect_err("no file").contains("/nowhere/at/all"));
    }
}
