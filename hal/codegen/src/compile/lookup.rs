//! Code for a builtin operation: the on-disk cache's, else a run-time compiler's. Embedded code,
//! which comes first, is [`super::embedded::EmbeddedObject`].

use super::cache::{CodeCache, CodeKey};
use super::cached::settings;
use super::compiler::{Compilation, Compiler};
use super::embedded::registered;
use hal::error::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Finds code for a compilation of a builtin source, whichever compiler made it, and returns what
/// `load` makes of it. Code of the cache that `load` refuses is compiled anew.
///
/// # Errors
/// Those of `load` and of the compiler; `Unsupported` that names every place without code.
pub fn find<T>(
    compilation: &Compilation<'_>,
    cache: &CodeCache,
    compiler: Result<Arc<dyn Compiler>>,
    load: impl Fn(&[u8]) -> Result<T>,
) -> Result<T> {
    let settings = match &compiler {
        Ok(compiler) => settings(compiler.as_ref(), |name| std::env::var_os(name)),
        // Code that some compiler made before.
        Err(_) => String::new(),
    };
    let key = CodeKey::new(compilation, &format!("any compiler{settings}"));
    if let Some(code) = cache.load(&key) {
        match load(&code) {
            Err(error) if !would_fail_again(&error) => {
                log::warn!("{} from the on-disk cache is not used: {error}", compilation.name);
            }
            loaded => return loaded,
        }
    }
    let compiled = compiler.and_then(|it| it.compile(compilation));
    let code = compiled.map_err(|error| no_code(cache, compilation, error))?.code;
    let loaded = load(&code)?;
    cache.store(&key, &code);
    Ok(loaded)
}

/// True for a failure to load code that says nothing of the code.
pub fn would_fail_again(error: &Error) -> bool {
    use ErrorKind::{DeviceLost, InvalidHandle, LaunchFailed, OutOfMemory};
    matches!(error.kind(), DeviceLost | InvalidHandle | LaunchFailed | OutOfMemory)
}

/// The error where nothing has code and nothing compiles it; another failure of the compiler
/// stays as it is.
fn no_code(cache: &CodeCache, compilation: &Compilation<'_>, error: Error) -> Error {
    if error.kind() != ErrorKind::Unsupported {
        return error;
    }
    let (name, target) = (compilation.name, compilation.target);
    let embedded = match &registered()[..] {
        [] => "this build embeds none".to_owned(),
        list => format!("this build embeds some for {} but not this", list.join(", ")),
    };
    let kept = match cache.folder() {
        Some(folder) => format!("{} has none", folder.display()),
        None => "the on-disk cache is off".to_owned(),
    };
    let detail = format!(
        "{name} needs code for {target}: {embedded} (PYBIND_GPU_TARGET={target} when building \
         adds it), {kept}, and nothing can compile it: {}",
        error.detail()
    );
    Error::new(error.kind(), error.status(), "execute", detail)
}
