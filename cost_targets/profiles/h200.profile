# NVIDIA H200 through CUDA 13.0 (driver 580.159.04): an H100 with more and faster memory, measured.
base = h100
name = h200
l2_bytes = 62914560 B          # the driver's answer
ghz = 1.98 GHz                 # the driver's answer, which ncu finds it to keep
dram_gbs = 4400 GB/s           # sinter calibrate: a copy of 252 MB
