#!/bin/sh
# Generates src/bindings.rs from real headers: `make bindings`. Needs Python with pip, libclang
# (Debian: libclang-dev; or LIBCLANG_PATH) and, to install bindgen the first time, cargo.
# generate.sh FOLDER: a folder for the headers and for bindgen, kept.
set -eu
# bindgen would take TARGET for the target of the headers.
unset TARGET
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)
version=0.73.2

bindgen=$work/bindgen-$version/bin/bindgen
[ -x "$bindgen" ] || "${CARGO:-cargo}" install --quiet --locked --root "$work/bindgen-$version" \
    "bindgen-cli@$version"
"${PYTHON:-python3}" "$here/fetch.py" headers 6.2 "$work/hip-headers/6.2"

functions='hip(Init|RuntimeGetVersion|Get(DeviceCount|Device|ErrorName|ErrorString|LastError)|SetDevice)
hipGetDeviceProperties(R0600)?
hipDevice(Get|GetName|TotalMem|GetAttribute|GetPCIBusId|GetUuid|CanAccessPeer|Synchronize|Reset)
hipDevice(GetStreamPriorityRange|GetLimit|SetLimit|EnablePeerAccess|DisablePeerAccess)
hipMem(GetInfo|GetAddressRange|AllocPitch|PrefetchAsync|cpyPeerAsync|cpy3DAsync)
hipMemcpy(HtoD|DtoH|HtoDAsync|DtoHAsync|DtoDAsync)|hipMemsetD(8|16|32)Async
hipArray(3DCreate|Destroy)|hipTexObject(Create|Destroy)|hip(Create|Destroy)SurfaceObject
hipMalloc(Managed|FromPoolAsync)?|hipFree(Async)?
hipHost(Malloc|Free|GetDevicePointer|Register|Unregister)|hipPointerGetAttributes
hipMemPool(Create|Destroy|SetAttribute|GetAttribute|TrimTo|SetAccess)
hipIpc(GetMemHandle|OpenMemHandle|CloseMemHandle|GetEventHandle|OpenEventHandle)
hipStream(CreateWithPriority|Destroy|Query|Synchronize|WaitEvent|AddCallback|GetPriority|GetFlags)
hipStream(BeginCapture|EndCapture|GetCaptureInfo|GetCaptureInfo_v2)|hipThreadExchangeStreamCaptureMode
hipEvent(CreateWithFlags|Destroy|Record|Query|Synchronize|ElapsedTime)|hipLaunchHostFunc
hipModule(LoadDataEx|Unload|GetFunction|GetGlobal|LaunchKernel|LaunchCooperativeKernel)
hipFuncGetAttribute|hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
hipGraph(InstantiateWithFlags|Launch|Destroy|ExecDestroy|GetNodes|RetainUserObject)|hipUserObjectCreate|hipProfiler(Start|Stop)
hiprtc(Version|CreateProgram|DestroyProgram|CompileProgram|AddNameExpression|GetLoweredName)
hiprtc(GetProgramLogSize|GetProgramLog|GetCodeSize|GetCode|GetErrorString)'
types='hip(DeviceArch_t|DeviceAttribute_t|Function_attribute|MemPoolAttr|Limit_t|DeviceProp_tR0000)'
# Types that the bindings leave opaque: the driver layer defines these structs itself, and
# tests/abi.rs compares them with the headers.
opaque='hipArray|hipDeviceArch_t|HIP_(RESOURCE|RESOURCE_VIEW|TEXTURE)_DESC_st
hipResourceDesc__bindgen_ty_1'
inside='(HIP_RESOURCE_DESC_st|hipResourceDesc__bindgen_ty_1)__.*
hipMipmappedArray(_t)?|hipChannelFormat(Desc|Kind)'
constants='hip(StreamNonBlocking|EventBlockingSync|EventDisableTiming|EventInterprocess)
hipHost(MallocPortable|MallocMapped|MallocWriteCombined|RegisterPortable|RegisterMapped)
hipMemAttachGlobal|hipIpcMemLazyEnablePeerAccess'
alternatives() { printf '%s' "$1" | tr '\n' '|'; }

"$bindgen" "$here/headers.h" \
    --allowlist-function "$(alternatives "$functions")" \
    --allowlist-type "$types" \
    --allowlist-var "$(alternatives "$constants")" \
    --opaque-type "$(alternatives "$opaque")" --blocklist-type "$(alternatives "$inside")" \
    --no-debug hipResourceDesc --merge-extern-blocks \
    --default-enum-style moduleconsts \
    --no-doc-comments --no-layout-tests --no-prepend-enum-name \
    --rust-edition 2024 --rust-target 1.85 --ctypes-prefix ::std::ffi \
    --disable-header-comment \
    --raw-line '// Made by `make bindings` from the headers of HIP 6.2, which are' \
    --raw-line '// Copyright (c) Advanced Micro Devices, Inc., under the MIT licence. Do not edit.' \
    --raw-line '' \
    --raw-line '#![allow(dead_code, missing_debug_implementations, missing_docs, non_camel_case_types)]' \
    --raw-line '#![allow(non_snake_case, non_upper_case_globals, unreachable_pub, reason = "made from headers")]' \
    --formatter rustfmt --rustfmt-configuration-file "$here/../../rustfmt.toml" \
    --output "$work/bindings.rs" \
    -- -D__HIP_PLATFORM_AMD__ -I "$work/hip-headers/6.2/include"
mv "$work/bindings.rs" "$here/../src/bindings.rs"
