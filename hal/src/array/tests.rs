//! Tests of all methods of arrays, as their sources have them.

use std::path::Path;

/// A public method or function with an array that may fail: its file and name, and its body.
fn fallible_methods() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/array");
    let mut files: Vec<_> = [folder.clone(), folder.join("typed")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder"))
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|it| it == "rs"))
        .collect();
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a source");
        for (start, _) in text.match_indices("pub ") {
            let Some(function) =
                ["fn ", "unsafe fn "].iter().find_map(|it| text[start + 4..].strip_prefix(it))
            else {
                continue;
            };
            let head = &function[..function.find(" {\n").expect("a body")];
            let takes_array =
                ["&self", "&mut self", "Argument<", ": &Self"].iter().any(|it| head.contains(it));
            if !head.contains("-> Result<") || !takes_array {
                continue;
            }
            let indent = text[..start].rsplit('\n').next().expect("a line");
            let body =
                &function[head.len()..function.find(&format!("\n{indent}}}\n")).expect("an end")];
            let name = head.split(['(', '<']).next().expect("a name");
            let file = path.file_name().expect("a name").to_string_lossy();
            found.push((
                format!("{file}: {name}"),
                body.trim_start_matches(" {\n").trim().to_owned(),
            ));
        }
    }
    found
}

/// Methods of other types than arrays, whose failure no array is told of.
const OTHERS: [&str; 2] = ["transfer.rs: is_done", "promote.rs: to_scalar"];

/// The one method that the body calls and whose result it returns, converted by what cannot fail.
fn delegate(body: &str) -> Option<&str> {
    let inner = [
        "Ok(Self::wrap(",
        "Ok(DeviceArray::wrap(",
        "Self::from_untyped(",
        "DeviceArray::from_untyped(",
    ]
    .iter()
    .find_map(|it| body.strip_prefix(it))
    .unwrap_or(body);
    let is_one =
        !body.contains(';') && body.matches('?').count() <= usize::from(inner.len() < body.len());
    let called =
        ["self.array.", "self.", "Array::"].iter().find_map(|it| inner.strip_prefix(it))?;
    let name = called.split(['(', '<', ':']).next()?;
    is_one.then_some(name)
}

#[test]
fn every_method_that_may_fail_notes_its_status() {
    let methods = fallible_methods();
    assert!(methods.len() > 70, "only {} methods were found", methods.len());
    let short = |name: &str| name.rsplit(' ').next().expect("a name").to_owned();
    let mut noting: Vec<String> = Vec::new();
    // What calls one that notes its status does so, too.
    loop {
        let known = noting.len();
        for (name, body) in &methods {
            let by_another =
                || delegate(body).is_some_and(|it| noting.iter().any(|name| short(name) == it));
            let by_itself = ["self.during(|| ", "self.array.during(|| ", "during(&"]
                .iter()
                .any(|it| body.contains(it));
            if !noting.contains(name) && (by_itself || by_another()) {
                noting.push(name.clone());
            }
        }
        if noting.len() == known {
            break;
        }
    }
    let silent: Vec<_> = methods
        .iter()
        .filter(|(name, _)| !noting.contains(name) && !OTHERS.contains(&name.as_str()))
        .collect();
    assert!(silent.is_empty(), "wrap the body in `during`: {silent:#?}");
}
