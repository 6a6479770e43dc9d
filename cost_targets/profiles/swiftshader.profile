# CPU through SwiftShader: work-items are SIMD lanes of four; no narrow storage, no 64-bit integers, no f16. A load of storage is a test and a load for each
# lane and element (an EPYC of the fourth generation: 43 ns a vector of four for four items), a texel one call (10 ns).
base = lavapipe
name = swiftshader
lanes = 4
trip_terms = 1                 # its compiler keeps what lives long in registers, all else in memory
max_items = 256
row_items = 4
dram_gbs = 4 GB/s
cache_gbs = 5 GB/s
stream_store_factor = 1
subgroup_min = 4
subgroup_max = 4
caps.f16_storage = 0
caps.bf16_storage = 0
caps.int8_storage = 0
caps.int16_storage = 0
caps.int64 = 0
caps.f64 = 0
caps.images = 1
max_trips = 0
max_texels = 65536             # queried: larger buffers are read as storage
