# CPU through SwiftShader: work-items are SIMD lanes of four; no narrow storage, no 64-bit integers, no f16.
base = lavapipe
name = swiftshader
lanes = 4
reads = storage
max_items = 256
row_items = 4
dram_gbs = 4 GB/s
cache_gbs = 5 GB/s
subgroup_min = 4
subgroup_max = 4
caps.f16_storage = 0
caps.bf16_storage = 0
caps.int8_storage = 0
caps.int16_storage = 0
caps.int64 = 0
caps.f64 = 0
caps.images = 1
