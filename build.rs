//! Reads `PYBIND_GPU_TARGET`, which names the devices that kernels are compiled for ahead of
//! time. This version embeds none, so it only has to say so.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PYBIND_GPU_TARGET");
    if let Ok(target) = std::env::var("PYBIND_GPU_TARGET")
        && !target.trim().is_empty()
    {
        println!(
            "cargo::error=PYBIND_GPU_TARGET is {target:?}, but this version of gpuarray embeds no \
             device code yet; unset it to build for the host"
        );
    }
}
