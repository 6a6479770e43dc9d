# CPU through rusticl on llvmpipe: work-items are SIMD lanes; 0.4-1.1 GB/s whatever the access: for correctness.
# One element a value: Mesa 22.3.6 loses 64-bit vectors that a loop carries.
base = lavapipe
name = rusticl
target = opencl
reads = storage
launch_ns = 60000 ns
dram_gbs = 1 GB/s
cache_gbs = 1 GB/s
stream_store_factor = 1
lane_load_cycles = 15             # attention of 4 x 256 keys and queries, element by element; sinter calibrate --cpu-time 20 (an Emerald Rapids, load 13)
caps.texel = 0
caps.nan_unsafe = 0
caps.exact_div = 0
caps.exact_sqrt = 0
caps.subgroups = 0
caps.subgroup_arithmetic = 0
caps.fma_fused = 0               # fma() of a device without CL_FP_FMA: measured 9 s to build a tile of products, 0.1 s as product and sum
caps.max_lanes = 1
hand_texels = 0
dear_elements = 8                 # one lane after another: gelu of 64 results is 4300 lines, which its compiler did not finish in minutes
caps.int8_storage = 0             # in words: the type legaliser of Mesa 22.3.6 on LLVM 15 crashes on chains of 8-bit operations
