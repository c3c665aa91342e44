//! Inline PTX: what instructions compute, by functions of their operands that are written here from the
//! instruction set's description.

#[path = "inline_ptx/bits.rs"]
mod bits;
#[path = "inline_ptx/checks.rs"]
mod checks;
#[path = "inline_ptx/floats.rs"]
mod floats;
#[path = "inline_ptx/integers.rs"]
mod integers;
#[path = "inline_ptx/programs.rs"]
mod programs;
#[path = "inline_ptx/table.rs"]
mod table;
mod units;
#[path = "inline_ptx/video.rs"]
mod video;
#[path = "inline_ptx/waits.rs"]
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
