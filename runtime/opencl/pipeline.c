/* OpenCL programs and kernels: text in, or the driver's binary from the cache with the text to fall back on.
   Parameters: a buffer a slot, then one u32 a word of the scalar block, then the number of groups. */
#include "runtime/rt_opencl.h"
#include <stdio.h>

/* ---- programs ---- */

/* With options of the device, and those that the text asks for in its first line. */
static cl_int build(ocl_device *device, cl_device_id id, const rt_code *rt, cl_program program) {
  static const char asks[] = "// -cl";
  const char *text = rt->data, *end = rt->size < sizeof asks || memcmp(text, asks, sizeof asks - 1) ? NULL : memchr(text, '\n', rt->size);
  char options[2 * sizeof device->build_options];
  snprintf(options, sizeof options, "%s%.*s", device->build_options, end ? (int)(end - text) - 2 : 0, text + 2);
  return device->api.clBuildProgram(program, 1, &id, options, NULL, NULL);
}

/* PoCL packs what lies in a folder of its own cache: what another process took away meanwhile is not in the binary. */
static bool is_whole(const ocl_device *device, const void *binary, size_t size) {
  const char *part = device->family->binary_part, *at = binary;
  const size_t length = part ? strlen(part) : 0;
  for (; size >= length; at++, size--)
    if (!length || !memcmp(at, part, length)) return true;
  return false;
}

/* Null for anything the driver does not like: the text is built then. */
static cl_program from_binary(ocl_device *device, cl_device_id id, const rt_code *rt, const void *cached, size_t size) {
  if (!cached || size == 0 || !is_whole(device, cached, size)) return NULL;
  const unsigned char *bytes = cached;
  cl_int status = CL_SUCCESS, code = CL_SUCCESS;
  cl_program program = device->api.clCreateProgramWithBinary(device->context, 1, &id, &size, &bytes, &status, &code);
  if (!program) return NULL;
  if (code == CL_SUCCESS && status == CL_SUCCESS && build(device, id, rt, program) == CL_SUCCESS) return program;
  device->api.clReleaseProgram(program);
  return NULL;
}

static snt_result build_failed(ocl_device *device, cl_device_id id, cl_program program, cl_int code, snt_diag *diag) {
  size_t size = 0;
  if (code != CL_BUILD_PROGRAM_FAILURE) return ocl_fail(device, code, "pipeline", "clBuildProgram", diag); /* not the text's fault */
  device->api.clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
  char *log = rt_take(device->base.alloc, size + 1);
  if (log && size) device->api.clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, size, log, NULL);
  snt_result result = rt_fail_log(diag, SNT_E_BACKEND, code, "pipeline", "the OpenCL compiler says", log);
  rt_give(device->base.alloc, log, size + 1);
  return result;
}

static snt_result from_text(ocl_device *device, cl_device_id id, const rt_code *rt, cl_program *out, snt_diag *diag) {
  const char *text = rt->data;
  cl_int code = CL_SUCCESS;
  cl_program program = device->api.clCreateProgramWithSource(device->context, 1, &text, &rt->size, &code);
  if (!program) return ocl_fail(device, code, "pipeline", "clCreateProgramWithSource", diag);
  code = build(device, id, rt, program);
  if (code == CL_SUCCESS) {
    *out = program;
    return SNT_OK;
  }
  snt_result result = build_failed(device, id, program, code, diag);
  device->api.clReleaseProgram(program);
  return result;
}

/* ---- kernels ---- */

/* Some drivers compile for a group size at the first launch. One group that finds itself past the number of groups (0) does that now,
   so that submit never compiles. Failure is not an error: the launch will tell. */
static void warm_up(ocl_device *device, ocl_pipeline *pipeline, uint32_t words) {
  const ocl_api *api = &device->api;
  const cl_mem none = NULL;
  const uint32_t zero = 0;
  const size_t items[3] = {pipeline->items[0], pipeline->items[1], pipeline->items[2]};
  cl_int code = CL_SUCCESS;
  cl_command_queue queue = api->clCreateCommandQueue(device->context, pipeline->id, 0, &code);
  if (code != CL_SUCCESS) return;
  for (uint32_t slot = 0; slot < pipeline->binding_count; slot++) code |= api->clSetKernelArg(pipeline->kernel, slot, sizeof none, &none);
  for (uint32_t i = 0; i < words; i++) code |= api->clSetKernelArg(pipeline->kernel, pipeline->binding_count + i, sizeof zero, &zero);
  if (code == CL_SUCCESS) api->clEnqueueNDRangeKernel(queue, pipeline->kernel, 3, NULL, items, items, 0, NULL, NULL);
  api->clFinish(queue);
  api->clReleaseCommandQueue(queue);
}

static snt_result check_kernel(ocl_device *device, const ocl_pipeline *pipeline, uint32_t words, snt_diag *diag) {
  cl_uint parameters = 0;
  size_t most = 0, items = (size_t)pipeline->items[0] * pipeline->items[1] * pipeline->items[2];
  cl_int code = device->api.clGetKernelInfo(pipeline->kernel, CL_KERNEL_NUM_ARGS, sizeof parameters, &parameters, NULL);
  if (code != CL_SUCCESS) return ocl_fail(device, code, "pipeline", "clGetKernelInfo", diag);
  if (parameters != pipeline->binding_count + words) {
    return ir_fail(diag, SNT_E_ARG, "pipeline", 0, "the kernel has %u parameters, the plan gives %u buffers and %u words", parameters,
                   pipeline->binding_count, words);
  }
  code = device->api.clGetKernelWorkGroupInfo(pipeline->kernel, pipeline->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
  if (code != CL_SUCCESS) return ocl_fail(device, code, "pipeline", "clGetKernelWorkGroupInfo", diag);
  if (items <= most || device->family->understates) return SNT_OK;
  return ir_fail(diag, SNT_E_LIMIT, "pipeline", 0, "%zu work-items a group, this kernel may have %zu here", items, most);
}

static snt_result make_kernel(ocl_device *device, ocl_pipeline *pipeline, const rt_code *rt, snt_diag *diag) {
  cl_int code = CL_SUCCESS;
  uint32_t words = rt->block_bytes / 4 + 1;
  pipeline->kernel = device->api.clCreateKernel(pipeline->program, rt->entry, &code);
  if (!pipeline->kernel) return ocl_fail(device, code, "pipeline", "clCreateKernel", diag);
  SNT_TRY(check_kernel(device, pipeline, words, diag));
  if (device->family->warms_up) warm_up(device, pipeline, words);
  return SNT_OK;
}

snt_result ocl_pipeline_create(rt_device *base, const rt_code *rt, const void *cached, size_t cached_bytes, rt_pipeline **out,
                               snt_diag *diag) {
  ocl_device *device = (ocl_device *)base;
  if (base->lost) return SNT_E_DEVICE_LOST;
  ocl_pipeline *pipeline = rt_take(base->alloc, sizeof *pipeline);
  if (!pipeline) return ir_fail(diag, SNT_E_HOST_MEM, "pipeline", 0, "out of memory");
  pipeline->base = (rt_pipeline){.v = base->v, .device = base};
  rt_lock_init(&pipeline->lock);
  memcpy(pipeline->items, rt->items, sizeof pipeline->items);
  pipeline->binding_count = rt->binding_count;
  pipeline->id = rt->near ? device->near : device->id;
  if (device->family->builds_alone) rt_lock_take(&device->building);
  pipeline->program = from_binary(device, pipeline->id, rt, cached, cached_bytes);
  pipeline->base.from_binary = pipeline->program != NULL;
  snt_result result = SNT_OK;
  if (!pipeline->program) result = from_text(device, pipeline->id, rt, &pipeline->program, diag);
  if (device->family->builds_alone) rt_lock_give(&device->building);
  if (result == SNT_OK) result = make_kernel(device, pipeline, rt, diag);
  if (result != SNT_OK) ocl_pipeline_destroy(&pipeline->base);
  else *out = &pipeline->base;
  return result;
}

snt_result ocl_pipeline_binary(rt_pipeline *base, void *dst, size_t *size) {
  ocl_pipeline *pipeline = (ocl_pipeline *)base;
  const ocl_api *api = &((ocl_device *)base->device)->api;
  size_t have = 0, room = *size;
  cl_int code = api->clGetProgramInfo(pipeline->program, CL_PROGRAM_BINARY_SIZES, sizeof have, &have, NULL);
  if (code != CL_SUCCESS || have == 0) return SNT_E_UNSUPPORTED;
  *size = have;
  if (!dst) return SNT_OK;
  if (room < have) return SNT_INCOMPLETE;
  unsigned char *bytes = dst;
  code = api->clGetProgramInfo(pipeline->program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL);
  return code == CL_SUCCESS && is_whole((ocl_device *)base->device, dst, have) ? SNT_OK : SNT_E_BACKEND;
}

void ocl_pipeline_report(const rt_pipeline *base, rt_report *out) {
  const ocl_pipeline *pipeline = (const ocl_pipeline *)base;
  const ocl_device *device = (const ocl_device *)base->device;
  cl_ulong bytes = 0;
  const cl_int code = device->api.clGetKernelWorkGroupInfo(pipeline->kernel, pipeline->id, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof bytes, &bytes,
                                                           NULL);
  *out = (rt_report){code == CL_SUCCESS && bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX, UINT32_MAX};
}

void ocl_pipeline_destroy(rt_pipeline *base) {
  if (!base) return;
  ocl_pipeline *pipeline = (ocl_pipeline *)base;
  const ocl_api *api = &((ocl_device *)base->device)->api;
  if (pipeline->kernel) api->clReleaseKernel(pipeline->kernel);
  if (pipeline->program) api->clReleaseProgram(pipeline->program);
  rt_lock_drop(&pipeline->lock);
  rt_give(base->device->alloc, pipeline, sizeof *pipeline);
}
