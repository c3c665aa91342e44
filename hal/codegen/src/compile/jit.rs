//! Options of the drivers' loaders and linkers, and their logs.

use hal::module::LoadOptions;
use std::ffi::{c_int, c_void};

/// Bytes of each of the logs.
const LOG_BYTES: usize = 64 << 10;

/// `CU_JIT_*`; `hipJitOption` is numbered alike.
const MAX_REGISTERS: c_int = 0;
const INFO_LOG: c_int = 3;
const INFO_LOG_SIZE: c_int = 4;
const ERROR_LOG: c_int = 5;
const ERROR_LOG_SIZE: c_int = 6;
const OPTIMIZATION_LEVEL: c_int = 7;
const DEBUG: c_int = 11;
const VERBOSE: c_int = 12;
const LINE_INFO: c_int = 13;

/// The options of a call that compiles or links, and its logs.
#[derive(Debug)]
pub struct JitOptions {
    keys: Vec<c_int>,
    values: Vec<*mut c_void>,
    info: Vec<u8>,
    error: Vec<u8>,
}

impl JitOptions {
    /// Returns the options, and room for the logs.
    pub fn new(options: &LoadOptions) -> JitOptions {
        let mut all = JitOptions {
            keys: Vec::new(),
            values: Vec::new(),
            info: vec![0; LOG_BYTES],
            error: vec![0; LOG_BYTES],
        };
        // A value is a number of the size of a pointer, or a pointer.
        let size = LOG_BYTES as *mut c_void;
        let logs = [
            (INFO_LOG, all.info.as_mut_ptr().cast()),
            (INFO_LOG_SIZE, size),
            (ERROR_LOG, all.error.as_mut_ptr().cast()),
            (ERROR_LOG_SIZE, size),
        ];
        let number = |value: u32| value as usize as *mut c_void;
        let chosen = [
            options.max_registers.map(|value| (MAX_REGISTERS, number(value))),
            options.optimization_level.map(|value| (OPTIMIZATION_LEVEL, number(value))),
            options.debug.then_some((DEBUG, number(1))),
            options.line_info.then_some((LINE_INFO, number(1))),
            options.verbose.then_some((VERBOSE, number(1))),
        ];
        for (key, value) in logs.into_iter().chain(chosen.into_iter().flatten()) {
            all.keys.push(key);
            all.values.push(value);
        }
        all
    }

    /// Returns number, keys and values, as the driver takes them.
    pub fn as_arguments(&mut self) -> (u32, *mut c_int, *mut *mut c_void) {
        (self.keys.len() as u32, self.keys.as_mut_ptr(), self.values.as_mut_ptr())
    }

    fn text(bytes: &[u8]) -> String {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
    }

    /// Returns the log of the driver's compiler or linker; empty if there is none.
    pub fn info(&self) -> String {
        Self::text(&self.info)
    }

    /// Returns the error log of the loader or linker.
    pub fn errors(&self) -> String {
        Self::text(&self.error)
    }
}
