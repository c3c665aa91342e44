//! Tests the results of inline PTX instructions, using functions of their operands written from the
//! description of the instruction set.

mod bits;
mod checks;
mod floats;
mod integers;
mod programs;
mod table;
mod video;
mod waits;

#[test]
fn integers_are_computed_with() {
    table::check(&integers::cases());
}

#[test]
fn bits_are_moved_and_counted() {
    table::check(&bits::cases());
}

#[test]
fn floats_are_computed_with_and_converted() {
    table::check(&floats::cases());
}

#[test]
fn parts_of_words_are_computed_with() {
    table::check(&video::cases());
}
