//! Tests over all methods of arrays, found in their sources.

use std::path::Path;

/// A fallible method, or a fallible function of arrays.
struct Method {
    /// Its file and name.
    place: String,
    name: String,
    is_public: bool,
    body: String,
}

fn fallible_methods() -> Vec<Method> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files: Vec<_> = [folder.clone(), folder.join("typed")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder"))
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|it| it == "rs"))
        // Layouts are not arrays.
        .filter(|path| !path.ends_with("tests.rs") && !path.ends_with("layout.rs"))
        .collect();
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a source");
        for (start, _) in text.match_indices("fn ") {
            let line = text[..start].rsplit('\n').next().expect("a line");
            let is_public = line.trim_start().starts_with("pub ");
            let function = &text[start + 3..];
            let Some(head) = function.find(" {\n").map(|end| &function[..end]) else { continue };
            let takes_array =
                ["&self", "&mut self", "Argument<", ": &Self"].iter().any(|it| head.contains(it));
            if !head.contains("-> Result<") || !takes_array || head.contains(';') {
                continue;
            }
            let indent = &line[..line.len() - line.trim_start().len()];
            let end = function.find(&format!("\n{indent}}}\n")).expect("an end");
            let code = function[head.len()..end]
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            let name = head.split(['(', '<']).next().expect("a name").to_owned();
            let file = path.file_name().expect("a name").to_string_lossy();
            let (place, body) = (format!("{file}: {name}"), code.collect::<Vec<_>>().join("\n"));
            found.push(Method { place, name, is_public, body });
        }
    }
    found
}

/// Methods of types other than arrays, whose failures no array stores.
const OTHERS: [&str; 6] = [
    "transfer.rs: is_done",
    "promote.rs: to_scalar",
    "expression.rs: unary",
    "expression.rs: binary",
    "expression.rs: select",
    "expression.rs: cast",
];

/// Returns the methods whose results the body returns, if nothing else in it may fail: conversions of the
/// result are infallible.
fn delegates<'a>(body: &'a str, all: &[Method]) -> Option<Vec<&'a str>> {
    let conversions = ["::from_untyped(", "::wrap("].map(|it| body.matches(it).count());
    if body.contains("Err(") || body.matches('?').count() > conversions.iter().sum() {
        return None;
    }
    let called: Vec<_> = ["self.array.", "self.", "Array::"]
        .iter()
        .flat_map(|receiver| {
            body.match_indices(receiver).map(move |(at, _)| &body[at + receiver.len()..])
        })
        .filter_map(|call| call.split(['(', '<', ':', ' ', '.']).next())
        .filter(|name| all.iter().any(|it| it.name == *name))
        .collect();
    (!called.is_empty()).then_some(called)
}

#[test]
fn every_method_that_may_fail_notes_its_status() {
    let methods = fallible_methods();
    let public = methods.iter().filter(|it| it.is_public).count();
    assert!(public > 70, "only {public} methods were found");
    let notes =
        ["self.during(|| ", "self.array.during(|| ", "self.array.array.during(|| ", "during(&"];
    let mut noting: Vec<&Method> =
        methods.iter().filter(|it| notes.iter().any(|note| it.body.contains(note))).collect();
    // A method that returns the result of a method that stores its status also stores it.
    loop {
        let is_noted = |name: &&str| noting.iter().any(|it| it.name == **name);
        let more = methods.iter().find(|method| {
            let is_known = noting.iter().any(|it| it.place == method.place);
            !is_known
                && delegates(&method.body, &methods).is_some_and(|it| it.iter().all(&is_noted))
        });
        let Some(more) = more else { break };
        noting.push(more);
    }
    let is_silent = |method: &&Method| {
        let place = &method.place;
        method.is_public
            && !noting.iter().any(|it| it.place == *place)
            && !OTHERS.contains(&place.as_str())
    };
    let silent: Vec<_> = methods.iter().filter(is_silent).map(|it| (&it.place, &it.body)).collect();
    assert!(silent.is_empty(), "wrap the body in `during`: {silent:#?}");
}
