/* Matrix units of a Vulkan device, by VK_KHR_cooperative_matrix: which products of fragments it has, of those that kernels are made of. In: what the
   driver lists. Out: rows of kir_caps. */
#include "runtime/rt_vulkan.h"

enum { MOST = 256 }; /* products that are looked at */

/* Component types (VkComponentTypeKHR) of operands and sums; bytes without a sign are summed without one, which is the same bits. */
static const struct {
  uint32_t operand, sum;
} types[KIR_MMA_TYPES] = {
    [KIR_MMA_F16] = {0, 1},           /* FLOAT16, FLOAT32 */
    [KIR_MMA_BF16] = {1000141000, 1}, /* BFLOAT16 */
    [KIR_MMA_I8] = {3, 5},            /* SINT8, SINT32 */
    [KIR_MMA_U8] = {7, 9},            /* UINT8, UINT32 */
};
enum { SCOPE_SUBGROUP = 3 };

static bool is_product(const vk_units_properties *p, uint32_t type) {
  return p->a == types[type].operand && p->b == p->a && p->c == types[type].sum && p->result == p->c && p->scope == SCOPE_SUBGROUP &&
         !p->saturating && p->m && p->m < KIR_MMA_ANY && p->n < KIR_MMA_ANY && p->k < KIR_MMA_ANY;
}

/* The largest of each type: the fewest loads for a product. */
static void take_largest(const vk_units_properties *list, uint32_t count, kir_mma *out) {
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t t = 0; t < KIR_MMA_TYPES; t++)
      if (is_product(&list[i], t) && list[i].m * list[i].n * list[i].k > (uint32_t)out[t].m * out[t].n * out[t].k)
        out[t] = (kir_mma){(uint8_t)list[i].m, (uint8_t)list[i].n, (uint8_t)list[i].k};
}

void vk_query_units(PFN_vkGetInstanceProcAddr get, VkInstance instance, const snt_host_alloc *alloc, VkPhysicalDevice physical,
                    kir_mma *out) {
  const vk_get_units list = (vk_get_units)get(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  uint32_t count = 0;
  memset(out, 0, KIR_MMA_TYPES * sizeof *out);
  if (!list || list(physical, &count, NULL) != VK_SUCCESS || !count || count > MOST) return;
  const uint32_t room = count;
  vk_units_properties *rows = rt_take(alloc, room * sizeof *rows);
  for (uint32_t i = 0; rows && i < room; i++) rows[i] = (vk_units_properties){.type = VK_UNITS_PROPERTIES};
  if (rows && list(physical, &count, rows) == VK_SUCCESS) take_largest(rows, count, out);
  rt_give(alloc, rows, room * sizeof *rows);
}
