//! Compiles the builtin operations for the devices that `PYBIND_GPU_TARGET` names (feature
//! `aot`), and decides which backend is tried first. Without that variable it looks for no
//! compiler.

#[path = "build/mod.rs"]
mod embed;

use embed::environment::Environment;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    let environment = Environment::new(|name| std::env::var_os(name), "/");
    let result = embed::run(&environment);
    for name in environment.names() {
        println!("cargo::rerun-if-env-changed={name}");
    }
    match result {
        Ok(warnings) => warnings.iter().for_each(|it| println!("cargo::warning={it}")),
        // An error and no exit status: cargo then shows this line and nothing else.
        Err(message) => println!("cargo::error={message}"),
    }
}
