//! The messages in the logs of compilers: GCC and clang (`file:3:7: error: text`), and NVIDIA's (`file(3): error: text`).

/// The words before an error's text, by compiler. Warnings and notes are not errors.
const ERRORS: [&str; 5] = ["error", "fatal error", "catastrophic error", "internal error", "fatal"];
const NOTES: [&str; 3] = ["note", "remark", "Remark"];
const WARNING: &str = "warning";

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) file: &'a str,
    pub(super) line: usize,
    pub(super) column: Option<usize>,
}

/// A line that a compiler has quoted, and the position of its caret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quoted<'a> {
    pub(super) line: &'a str,
    pub(super) caret: usize,
}

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) place: Option<Place<'a>>,
    pub(super) is_error: bool,
    pub(super) text: &'a str,
    pub(super) quoted: Option<Quoted<'a>>,
    /// The notes, and the places that led to the place of the message, the nearest first.
    pub(super) notes: Vec<(Place<'a>, &'a str)>,
}

/// Reads the messages of a log.
pub(super) fn messages(log: &str) -> Vec<Message<'_>> {
    let mut all: Vec<Message<'_>> = Vec::new();
    // The places read so far that led to the place of the next message.
    let mut led: Vec<(Place<'_>, &str)> = Vec::new();
    let mut before = "";
    // True for lines about a message itself, or about the note that has its place.
    let mut is_main = false;
    for line in log.lines() {
        match heading(line) {
            Some((place, Severity::Note, text)) => {
                is_main = false;
                if let (Some(place), Some(last)) = (place, all.last_mut()) {
                    // NVIDIA's compiler reports the end of a text without a place, and names the brace in a note.
                    is_main = last.place.is_none();
                    if is_main { last.place = Some(place) } else { last.notes.push((place, text)) }
                }
            }
            Some((place, severity, text)) => {
                is_main = true;
                let is_error = severity == Severity::Error;
                let notes = std::mem::take(&mut led);
                all.push(Message { place, is_error, text, quoted: None, notes });
            }
            None => {
                if let Some(place) = required_from(line) {
                    led.push((place, "required from here"));
                } else if let (Some(quoted), Some(last)) = (quoted(before, line), all.last_mut()) {
                    if is_main && last.quoted.is_none() {
                        last.quoted = Some(quoted);
                    }
                } else if let Some(last) = all.last_mut() {
                    last.notes.extend(instantiation(line, last.place.map(|it| it.file)));
                }
            }
        }
        before = line;
    }
    all
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Error,
    Warning,
    Note,
}

/// Reads the first line of a message.
fn heading(line: &str) -> Option<(Option<Place<'_>>, Severity, &str)> {
    let mut from = 0;
    while let Some(colon) = line[from..].find(": ").map(|it| from + it) {
        from = colon + 2;
        let start = line[..colon].rfind([':', ';', ',']).map_or(0, |it| it + 1);
        let word = line[start..colon].trim();
        let Some(severity) = severity(word) else { continue };
        let (place, text) = (line[..start].trim_end_matches([':', ';', ',']).trim(), &line[from..]);
        return Some((place_of(place), severity, text.trim()));
    }
    None
}

/// Reads `error`, or `warning #177-D`.
fn severity(word: &str) -> Option<Severity> {
    let plain = word.split_once(" #").map_or(word, |it| it.0).trim();
    let plain = plain.strip_prefix("ptxas ").unwrap_or(plain);
    match plain {
        WARNING => Some(Severity::Warning),
        it if ERRORS.contains(&it) => Some(Severity::Error),
        it if NOTES.contains(&it) => Some(Severity::Note),
        _ => None,
    }
}

/// Reads `file:3:7`, `file:3` or `file(3)`.
fn place_of(text: &str) -> Option<Place<'_>> {
    if let Some((file, line)) = text.strip_suffix(')').and_then(|it| it.rsplit_once('('))
        && let Ok(line) = line.parse()
    {
        return Some(Place { file, line, column: None });
    }
    let (rest, last) = text.rsplit_once(':')?;
    let last = last.trim().parse().ok()?;
    match rest.rsplit_once(':').and_then(|it| Some((it.0, it.1.parse().ok()?))) {
        Some((file, line)) => Some(Place { file, line, column: Some(last) }),
        None => Some(Place { file: rest, line: last, column: None }),
    }
}

/// Reads GCC's `file:7:3:   required from here`, which comes before the message.
fn required_from(line: &str) -> Option<Place<'_>> {
    let (place, rest) = line.split_once(":  ")?;
    rest.trim_start().starts_with("required from").then(|| place_of(place))?
}

/// Reads NVIDIA's `instantiation of "f" at line 4 of file`, which comes after the message.
fn instantiation<'a>(line: &'a str, file: Option<&'a str>) -> Option<(Place<'a>, &'a str)> {
    let (what, place) = line.split_once(" at line ")?;
    let (number, of) = place.split_once(" of ").unwrap_or((place, ""));
    let line = number.trim().parse().ok()?;
    let file = if of.is_empty() { file? } else { of.trim().trim_matches('"') };
    let what = what.trim().trim_start_matches("detected during").trim_start_matches(':').trim();
    Some((Place { file, line, column: None }, what))
}

/// Reads a line that a compiler quotes and the line of its caret.
fn quoted<'a>(line: &'a str, carets: &str) -> Option<Quoted<'a>> {
    // `   12 | text`, as some compilers write it.
    let bar = carets.find('|').filter(|&it| carets[..it].trim().is_empty());
    let gutter = match bar.filter(|&it| line.get(it..=it) == Some("|")) {
        Some(bar) => bar + 1,
        None => 0,
    };
    let marks = carets.get(gutter..)?;
    let caret = marks.find('^')?;
    let is_marks = marks.bytes().all(|it| matches!(it, b' ' | b'\t' | b'^' | b'~' | b'|'));
    // Compilers count characters and not bytes.
    let caret = marks[..caret].chars().count();
    let line = line.get(gutter..)?;
    let caret = line.char_indices().nth(caret).map_or(line.len(), |it| it.0);
    is_marks.then_some(Quoted { line, caret })
}

#[cfg(test)]
mod tests {
    use super::{Place, messages};

    const GCC: &str = "k.cu: In function 'void k(int*)':\nk.cu:3:7: error: 'y' was not declared\n\
        k.cu:2:1: note: here\nIn file included from k.cu:1:\nh.h: In instantiation of 'f':\n\
        k.cu:7:5:   required from here\nh.h:9: error: no\n";
    const CLANG: &str = "/tmp/in/a b.cu:3:9: fatal error: unknown type name 'x'\n    3 |   x a;\n      |   ^~\n\
        1 error generated.\n";
    const NVRTC: &str = "a (b)(2): error: identifier \"y\" is undefined\n  \tint y;\n  \t    ^\n\n\
        k(2): error #20: expression must have class type\n  f(a);\n    ^\n          \
        detected during instantiation of \"T f(T)\" at line 4\n\n\
        k(3): warning #177-D: never referenced\n\nRemark: The warnings can be suppressed\n\n\
        At end of source: error: expected a \"}\"\nk(1): note #3196-D: to match this \"{\"\n\
        ptxas application ptx input, line 29; error   : Not a name of any known instruction\n\
        3 errors detected in the compilation of \"kernel.cu\".\n";

    fn place(file: &str, line: usize, column: Option<usize>) -> Option<Place<'_>> {
        Some(Place { file, line, column })
    }

    #[test]
    fn messages_of_each_compiler_are_read() {
        let gcc = messages(GCC);
        assert_eq!(gcc.len(), 2);
        assert_eq!(
            (gcc[0].place, gcc[0].text),
            (place("k.cu", 3, Some(7)), "'y' was not declared")
        );
        assert_eq!(gcc[0].notes, [(place("k.cu", 2, Some(1)).expect("there is one"), "here")]);
        assert_eq!(gcc[1].place, place("h.h", 9, None));
        assert_eq!(gcc[1].notes[0].0, place("k.cu", 7, Some(5)).expect("there is one"));
        let clang = messages(CLANG);
        assert_eq!((clang.len(), clang[0].place), (1, place("/tmp/in/a b.cu", 3, Some(9))));
        let quoted = clang[0].quoted.expect("there is one");
        assert_eq!(&quoted.line[quoted.caret..], "x a;");
        let nvrtc = messages(NVRTC);
        let errors: Vec<_> = nvrtc.iter().filter(|it| it.is_error).collect();
        assert_eq!((nvrtc.len(), errors.len()), (5, 4));
        assert_eq!(errors[0].place, place("a (b)", 2, None));
        let quoted = errors[0].quoted.expect("there is one");
        assert_eq!(&quoted.line[quoted.caret..], "y;");
        assert_eq!(errors[1].notes[0].0, place("k", 4, None).expect("there is one"));
        assert_eq!((errors[2].place, errors[2].notes.len()), (place("k", 1, None), 0));
        assert_eq!(errors[3].text, "Not a name of any known instruction");
    }
}
