//! Output of the writer: generated text, and tokens of the program on their original lines.

use super::Writer;
use std::fmt::Write as _;
use std::ops::Range;

impl Writer<'_, '_, '_> {
    pub(super) fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.last_token = None;
    }

    /// Writes a range of the program's text on its original lines. Indices that are already computed are
    /// replaced, and one lexeme may be renamed.
    pub(super) fn slice(&mut self, range: Range<usize>, renamed: Option<(usize, &str)>) {
        let tokens = self.lexemes.tokens;
        let mut next = range.start;
        for index in range {
            if index < next {
                continue;
            }
            if let Some(&(end, number)) = self.indices.get(&index) {
                let _ = write!(self.text, "gpuarray_i{number} + gpuarray_x");
                (next, self.last_token) = (end, None);
                continue;
            }
            let own = renamed.filter(|(at, _)| *at == index).map(|(_, name)| name);
            for token in self.lexemes.tokens_of(index) {
                let is_behind = self.last_token.is_some_and(|it| {
                    it + 1 == token && tokens.all[it].end == tokens.all[token].start
                });
                if !is_behind {
                    self.go_to(tokens.place(token));
                }
                self.text.push_str(own.unwrap_or(tokens.at(token)));
                self.last_token = Some(token);
            }
        }
    }

    /// Makes the compiler attribute the following text to a line of the program.
    pub(super) fn go_to(&mut self, place: String) {
        if self.place == place && !self.text.ends_with('\n') && self.last_token.is_some() {
            self.text.push(' ');
            return;
        }
        if let Some((file, line)) = place.rsplit_once(':') {
            // The flag 3 marks it as a line of a system header, so that its warnings are not repeated.
            let _ = write!(self.text, "\n# {line} \"{file}\" 3\n");
        }
        self.place = place;
    }
}
