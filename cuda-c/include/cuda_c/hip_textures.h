// Textures and surfaces under HIP's names.
#pragma once

extern "C++" {

typedef cudaTextureObject_t hipTextureObject_t;
typedef cudaSurfaceObject_t hipSurfaceObject_t;

typedef cudaTextureAddressMode hipTextureAddressMode;
typedef cudaTextureFilterMode hipTextureFilterMode;
typedef cudaTextureReadMode hipTextureReadMode;
typedef cudaSurfaceBoundaryMode hipSurfaceBoundaryMode;

static constexpr cudaTextureAddressMode hipAddressModeWrap = cudaAddressModeWrap;
static constexpr cudaTextureAddressMode hipAddressModeClamp = cudaAddressModeClamp;
static constexpr cudaTextureAddressMode hipAddressModeMirror = cudaAddressModeMirror;
static constexpr cudaTextureAddressMode hipAddressModeBorder = cudaAddressModeBorder;
static constexpr cudaTextureFilterMode hipFilterModePoint = cudaFilterModePoint;
static constexpr cudaTextureFilterMode hipFilterModeLinear = cudaFilterModeLinear;
static constexpr cudaTextureReadMode hipReadModeElementType = cudaReadModeElementType;
static constexpr cudaTextureReadMode hipReadModeNormalizedFloat = cudaReadModeNormalizedFloat;
static constexpr cudaSurfaceBoundaryMode hipBoundaryModeZero = cudaBoundaryModeZero;
static constexpr cudaSurfaceBoundaryMode hipBoundaryModeTrap = cudaBoundaryModeTrap;
static constexpr cudaSurfaceBoundaryMode hipBoundaryModeClamp = cudaBoundaryModeClamp;

#define hipTextureType1D cudaTextureType1D
#define hipTextureType2D cudaTextureType2D
#define hipTextureType3D cudaTextureType3D
#define hipTextureTypeCubemap cudaTextureTypeCubemap
#define hipTextureType1DLayered cudaTextureType1DLayered
#define hipTextureType2DLayered cudaTextureType2DLayered
#define hipTextureTypeCubemapLayered cudaTextureTypeCubemapLayered

} // extern "C++"
