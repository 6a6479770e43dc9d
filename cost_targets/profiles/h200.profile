# NVIDIA H200 SXM: an H100 with more and faster memory. Measured through CUDA 13.0, driver 580.159.04, sixteen processors of the host, on 2026-11-28.
base = h100
name = h200
l2_bytes = 62914560 B          # the driver's answer
dram_gbs = 4400 GB/s           # sinter calibrate: a copy of 252 MB; 0.9 of 2 x 3.201 GHz x 6144 bits
ghz = 1.98 GHz                 # the driver's answer
div_cycles = 18                # sinter calibrate: chains of 12, where a launch hides a part of the short one
cycles.sqrt.f32 = 13           # as div
cycles.rsqrt.f32 = 28          # as div
cycles.div.int = 21            # as div, chains of 6
