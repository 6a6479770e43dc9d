/* The table of group kinds: what each accepts and how it is built. */
#include "fusion/schedules.h"

const schedule_info fusion_schedules[GROUP_KIND_COUNT] = {
    [GROUP_NONE] = {NULL, NULL, NULL},
    [GROUP_LOOP] = {schedule_loop_accepts, schedule_loop_build, NULL},
    [GROUP_IMAGE] = {schedule_image_accepts, schedule_image_build, NULL},
    [GROUP_REDUCE] = {schedule_reduce_accepts, schedule_reduce_build, NULL},
    [GROUP_ROW] = {schedule_row_accepts, schedule_row_build, NULL},
    [GROUP_CONTRACT] = {schedule_contract_accepts, schedule_contract_build, NULL},
    [GROUP_WINDOW] = {schedule_window_accepts, schedule_window_build, NULL},
    [GROUP_TRANSPOSE] = {schedule_transpose_accepts, schedule_transpose_build, NULL},
    [GROUP_SCAN] = {schedule_scan_accepts, schedule_scan_build, NULL},
    [GROUP_SORT] = {NULL, schedule_sort_build, NULL},
    [GROUP_REPEAT] = {NULL, schedule_repeat_build, NULL},
    [GROUP_SCATTER] = {schedule_loop_accepts, schedule_scatter_build, NULL},
    [GROUP_ATTENTION] = {schedule_attention_accepts, schedule_attention_build, schedule_attention_work},
    [GROUP_OPAQUE] = {NULL, schedule_opaque_build, NULL},
};
