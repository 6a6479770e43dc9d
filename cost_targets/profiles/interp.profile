# The reference interpreter of kernel IR: schedules as for an explicit CPU, with small groups so that small shapes have several.
base = pocl
name = interp
target = kir
lanes = 4
stream_threshold = 0 B
caps.prefetch = 1
caps.dot4 = 1                  # as processors with VNNI, so that what they are given is checked
