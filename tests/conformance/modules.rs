//! Kernels of the program.

use crate::context::{Context, error_of};
use crate::harness::{Outcome, tests};
use gpuarray::{ErrorKind, LoadOptions, ModuleSource};

tests![a_device_without_a_compiler_says_so_by_name, what_is_no_module_is_refused];

const SOURCE: &str = "extern \"C\" __global__ void nothing() {}";

fn a_device_without_a_compiler_says_so_by_name(context: &Context) -> Outcome {
    let source = ModuleSource::Source { text: SOURCE, name: "nothing.cu", options: &[] };
    match context.device.load_module(&source, &LoadOptions::default()) {
        Ok(module) => assert_eq!(module.kernel("nothing")?.name(), "nothing"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert_eq!(error.call(), "load_module");
            assert!(error.detail().contains(&context.device.id().to_string()), "{error}");
        }
    }
    Ok(())
}

fn what_is_no_module_is_refused(context: &Context) -> Outcome {
    let error = error_of(
        context.device.load_module(&ModuleSource::Image(b"no code"), &LoadOptions::default()),
    );
    assert!(!error.status().is_success());
    assert!(!error.detail().is_empty());
    Ok(())
}
