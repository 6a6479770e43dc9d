/* Numbers of the SPIR-V 1.3 and GLSL.std.450 specifications that this generator uses. A test compares them with the Khronos headers. */
#ifndef CODEGEN_SPIRV_SPV_CODES_H
#define CODEGEN_SPIRV_SPV_CODES_H

enum { SPV_MAGIC = 0x07230203, SPV_VERSION = 0x00010300 };
// clang-format off
enum { /* instructions */
  SpvOpNop = 0, SpvOpSourceContinued = 2, SpvOpSource = 3, SpvOpString = 7, SpvOpLine = 8, SpvOpExtension = 10, SpvOpExtInstImport = 11, SpvOpExtInst = 12, SpvOpMemoryModel = 14, SpvOpEntryPoint = 15,
  SpvOpExecutionMode = 16, SpvOpCapability = 17, SpvOpTypeVoid = 19, SpvOpTypeBool = 20, SpvOpTypeInt = 21, SpvOpTypeFloat = 22,
  SpvOpTypeVector = 23, SpvOpTypeImage = 25, SpvOpTypeSampledImage = 27, SpvOpTypeArray = 28, SpvOpTypeRuntimeArray = 29,
  SpvOpTypeStruct = 30, SpvOpTypePointer = 32, SpvOpTypeFunction = 33, SpvOpConstantTrue = 41, SpvOpConstantFalse = 42,
  SpvOpConstant = 43, SpvOpConstantComposite = 44, SpvOpConstantNull = 46, SpvOpFunction = 54, SpvOpFunctionEnd = 56,
  SpvOpVariable = 59, SpvOpLoad = 61, SpvOpStore = 62, SpvOpAccessChain = 65, SpvOpName = 5, SpvOpDecorate = 71,
  SpvOpMemberDecorate = 72, SpvOpVectorExtractDynamic = 77, SpvOpVectorInsertDynamic = 78, SpvOpVectorShuffle = 79,
  SpvOpCompositeConstruct = 80, SpvOpCompositeExtract = 81, SpvOpCompositeInsert = 82, SpvOpImageSampleExplicitLod = 88,
  SpvOpImageFetch = 95, SpvOpImageRead = 98, SpvOpImageWrite = 99, SpvOpImage = 100, SpvOpConvertFToU = 109, SpvOpConvertFToS = 110,
  SpvOpConvertSToF = 111, SpvOpConvertUToF = 112, SpvOpUConvert = 113, SpvOpSConvert = 114, SpvOpFConvert = 115, SpvOpBitcast = 124,
  SpvOpSNegate = 126, SpvOpFNegate = 127, SpvOpIAdd = 128, SpvOpFAdd = 129, SpvOpISub = 130, SpvOpFSub = 131, SpvOpIMul = 132,
  SpvOpFMul = 133, SpvOpUDiv = 134, SpvOpSDiv = 135, SpvOpFDiv = 136, SpvOpUMod = 137, SpvOpFRem = 140, SpvOpUMulExtended = 151,
  SpvOpLogicalEqual = 164, SpvOpLogicalNotEqual = 165, SpvOpLogicalOr = 166, SpvOpLogicalAnd = 167, SpvOpLogicalNot = 168,
  SpvOpSelect = 169, SpvOpIEqual = 170, SpvOpINotEqual = 171, SpvOpUGreaterThan = 172, SpvOpSGreaterThan = 173,
  SpvOpUGreaterThanEqual = 174, SpvOpSGreaterThanEqual = 175, SpvOpULessThan = 176, SpvOpSLessThan = 177, SpvOpULessThanEqual = 178,
  SpvOpSLessThanEqual = 179, SpvOpFOrdEqual = 180, SpvOpFUnordNotEqual = 183, SpvOpFOrdLessThan = 184, SpvOpFOrdGreaterThan = 186,
  SpvOpFOrdLessThanEqual = 188, SpvOpFOrdGreaterThanEqual = 190, SpvOpIsNan = 156, SpvOpIsInf = 157, SpvOpShiftRightLogical = 194,
  SpvOpShiftRightArithmetic = 195, SpvOpShiftLeftLogical = 196, SpvOpBitwiseOr = 197, SpvOpBitwiseXor = 198, SpvOpBitwiseAnd = 199,
  SpvOpNot = 200, SpvOpBitCount = 205, SpvOpControlBarrier = 224, SpvOpAtomicCompareExchange = 230, SpvOpAtomicIAdd = 234,
  SpvOpAtomicSMin = 236, SpvOpAtomicUMin = 237, SpvOpAtomicSMax = 238, SpvOpAtomicUMax = 239, SpvOpAtomicAnd = 240,
  SpvOpAtomicOr = 241, SpvOpPhi = 245,
  SpvOpLoopMerge = 246, SpvOpSelectionMerge = 247, SpvOpLabel = 248, SpvOpBranch = 249, SpvOpBranchConditional = 250,
  SpvOpReturn = 253, SpvOpGroupNonUniformShuffle = 345, SpvOpGroupNonUniformIAdd = 349, SpvOpGroupNonUniformFAdd = 350,
  SpvOpGroupNonUniformSMin = 353, SpvOpGroupNonUniformUMin = 354, SpvOpGroupNonUniformFMin = 355, SpvOpGroupNonUniformSMax = 356,
  SpvOpGroupNonUniformUMax = 357, SpvOpGroupNonUniformFMax = 358,
  SpvOpSUDot = 4452, SpvOpTypeCooperativeMatrixKHR = 4456, SpvOpCooperativeMatrixLoadKHR = 4457, SpvOpCooperativeMatrixStoreKHR = 4458,
  SpvOpCooperativeMatrixMulAddKHR = 4459
};
// clang-format on
// clang-format off
enum { /* capabilities */
  SpvCapabilityShader = 1, SpvCapabilityFloat16 = 9, SpvCapabilityFloat64 = 10, SpvCapabilityInt64 = 11, SpvCapabilityInt16 = 22,
  SpvCapabilityInt8 = 39, SpvCapabilityStorageImageExtendedFormats = 49, SpvCapabilitySampledBuffer = 46,
  SpvCapabilityStorageImageWriteWithoutFormat = 56, SpvCapabilityGroupNonUniform = 61, SpvCapabilityGroupNonUniformArithmetic = 63,
  SpvCapabilityGroupNonUniformShuffle = 65, SpvCapabilityStorageBuffer16BitAccess = 4433, SpvCapabilityStorageBuffer8BitAccess = 4448,
  SpvCapabilityDenormPreserve = 4464, SpvCapabilitySignedZeroInfNanPreserve = 4466, SpvCapabilityRoundingModeRTE = 4467,
  SpvCapabilityDotProductInput4x8BitPacked = 6018, SpvCapabilityDotProduct = 6019,
  SpvCapabilityPhysicalStorageBufferAddresses = 5347, SpvCapabilityVulkanMemoryModel = 5345, SpvCapabilityCooperativeMatrixKHR = 6022
};
// clang-format on
// clang-format off
enum { /* decorations */
  SpvDecorationBlock = 2, SpvDecorationArrayStride = 6, SpvDecorationBuiltIn = 11, SpvDecorationNoContraction = 42,
  SpvDecorationNonWritable = 24, SpvDecorationNonReadable = 25, SpvDecorationRestrict = 19, SpvDecorationAliased = 20,
  SpvDecorationCoherent = 23,
  SpvDecorationBinding = 33, SpvDecorationDescriptorSet = 34, SpvDecorationOffset = 35
};
// clang-format on
// clang-format off
enum { /* built-in variables */
  SpvBuiltInNumWorkgroups = 24, SpvBuiltInWorkgroupId = 26, SpvBuiltInLocalInvocationId = 27, SpvBuiltInSubgroupId = 40,
  SpvBuiltInSubgroupLocalInvocationId = 41, SpvBuiltInNumSubgroups = 38
};
// clang-format on
// clang-format off
enum { /* storage classes */
  SpvStorageClassUniformConstant = 0, SpvStorageClassInput = 1, SpvStorageClassWorkgroup = 4, SpvStorageClassFunction = 7,
  SpvStorageClassPushConstant = 9, SpvStorageClassStorageBuffer = 12, SpvStorageClassPhysicalStorageBuffer = 5349
};
// clang-format on
// clang-format off
enum { /* extended instructions */
  GLSLstd450RoundEven = 2, GLSLstd450Trunc = 3, GLSLstd450FAbs = 4, GLSLstd450SAbs = 5, GLSLstd450Floor = 8, GLSLstd450Ceil = 9,
  GLSLstd450Sqrt = 31, GLSLstd450InverseSqrt = 32, GLSLstd450FMin = 37, GLSLstd450UMin = 38, GLSLstd450SMin = 39, GLSLstd450FMax = 40,
  GLSLstd450UMax = 41, GLSLstd450SMax = 42, GLSLstd450FindUMsb = 75, GLSLstd450PackHalf2x16 = 58, GLSLstd450UnpackHalf2x16 = 62,
  GLSLstd450Fma = 50
};
// clang-format on
// clang-format off
enum { /* the rest: each with its specification's name */
  SpvAddressingModelLogical = 0, SpvAddressingModelPhysicalStorageBuffer64 = 5348, SpvMemoryAccessAlignedMask = 2, SpvMemoryAccessNonPrivatePointerMask = 32,
  SpvMemoryModelGLSL450 = 1, SpvMemoryModelVulkan = 3, SpvScopeQueueFamily = 5, SpvMemorySemanticsMakeAvailableMask = 8192,
  SpvMemorySemanticsMakeVisibleMask = 16384, SpvExecutionModelGLCompute = 5, SpvExecutionModeLocalSize = 17,
  SpvExecutionModeDenormPreserve = 4459, SpvExecutionModeSignedZeroInfNanPreserve = 4461, SpvExecutionModeRoundingModeRTE = 4462,
  SpvScopeDevice = 1, SpvScopeWorkgroup = 2, SpvScopeSubgroup = 3, SpvGroupOperationReduce = 0, SpvDim2D = 1, SpvDimBuffer = 5,
  SpvImageOperandsLodMask = 2, SpvLoopControlUnrollMask = 1, SpvLoopControlDontUnrollMask = 2,
  SpvMemorySemanticsAcquireReleaseMask = 8, SpvMemorySemanticsUniformMemoryMask = 0x40, SpvMemorySemanticsWorkgroupMemoryMask = 0x100
};
// clang-format on
#endif
