# The table of docs/numerics.md: build/release/tests/math_ulp 1021 | awk -f docs/derive/numerics_table.awk
# A line of the test:  # exp (cheap) max 2.204 ulp at x=-0x1.9f15bcp+4 = -25.9 (rough division, 36 operations)
/^# .* max .* ulp at / {
  cheap = $3 == "(cheap)"
  name = $2; worst = $(4 + cheap)
  device = $0; sub(/.*\(/, "", device); sub(/, [0-9]+ operations\).*/, "", device)
  operations = $(NF - 1)
  if (!(name in seen)) { seen[name] = 1; order[++count] = name }
  key = name SUBSEP cheap
  if (device ~ /rough/) { if (worst + 0 > rough[key] + 0) rough[key] = worst; if (device !~ /fma/) plain[key] = operations; else fused[key] = operations }
  if (device ~ /exact/) { exact[key] = worst; exact_operations[key] = operations }
}
/^ok .* within .* ulp: rough division/ {
  cheap = $5 == "(cheap)"
  promise[$4 SUBSEP cheap] = $(6 + cheap)
}
function row(key, title) {
  if (!(key in promise)) return
  printf "| %s | %s | %s | %s | %s | %s | %s |\n", title, promise[key], rough[key], key in exact ? exact[key] : "as precise", plain[key], fused[key], key in exact_operations ? exact_operations[key] : ""
}
END {
  print "| function | promise | measured, rough division | measured, exact division | operations | with fma | with exact division |\n|---|---|---|---|---|---|---|"
  for (i = 1; i <= count; i++) { row(order[i] SUBSEP 0, order[i]); row(order[i] SUBSEP 1, order[i] ", cheap") }
}
