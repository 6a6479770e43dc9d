/* frame [--device PART] [--frames N] [--out DIR] [--window] [--validate|--validate-gpu]: a renderer of its own with three frames in flight draws an animated
   scene at a resolution that changes; Sinter's fused post-process runs inside the same command buffer, image to image. With --out each frame is read
   back and written as a PNG. Without it, and with --window, frames are shown in a window, until it is closed or N are shown; where there is no display,
   frames are drawn and dropped. */
#include "examples/frame/window.h"
#include "tools/host/host.h"
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct in_flight {
  VkCommandBuffer commands;
  VkFence fence;
  VkFramebuffer target;
  gpu_buffer pixels;
  uint32_t width, height, number;
  bool pending;
} in_flight;
typedef struct renderer {
  gpu gpu;
  window window;
  bool shows; /* in the window */
  scene scene;
  post post;
  VkCommandPool pool;
  gpu_image lit[FRAMES_IN_FLIGHT], shown[FRAMES_IN_FLIGHT];
  in_flight frames[FRAMES_IN_FLIGHT];
  const char *out;
} renderer;

static bool write_png(const renderer *r, const in_flight *f) {
  char path[512];
  png_image image = {.version = PNG_IMAGE_VERSION, .width = f->width, .height = f->height, .format = PNG_FORMAT_RGBA};
  if (!r->out) return true;
  snprintf(path, sizeof path, "%s/frame%03u.png", r->out, f->number);
  if (png_image_write_to_file(&image, path, 0, f->pixels.mapped, (int)(f->width * 4), NULL)) return true;
  fprintf(stderr, "frame: %s: %s\n", path, image.message);
  return false;
}

/* The slot is free once its fence has passed; only then are its pixels looked at, and its resources used again. */
static bool finish(renderer *r, in_flight *f) {
  if (!f->pending) return true;
  f->pending = false;
  gpu *g = &r->gpu;
  return gpu_check(g->vkWaitForFences(g->device, 1, &f->fence, VK_TRUE, UINT64_MAX), "vkWaitForFences") &&
         gpu_check(g->vkResetFences(g->device, 1, &f->fence), "vkResetFences") && write_png(r, f);
}

static void shown_to_general(gpu *g, VkCommandBuffer commands, const gpu_image *image) {
  const VkImageMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
                                        .dstAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                        .oldLayout = VK_IMAGE_LAYOUT_UNDEFINED,
                                        .newLayout = VK_IMAGE_LAYOUT_GENERAL,
                                        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                        .image = image->image,
                                        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
  g->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 0, NULL, 0, NULL, 1, &barrier);
}

static void read_back(gpu *g, const in_flight *f, const gpu_image *image) {
  const VkBufferImageCopy region = {.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1}, .imageExtent = {f->width, f->height, 1}};
  const VkMemoryBarrier to_host = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT, .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
  g->vkCmdCopyImageToBuffer(f->commands, image->image, VK_IMAGE_LAYOUT_GENERAL, f->pixels.buffer, 1, &region);
  g->vkCmdPipelineBarrier(f->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, NULL, 0, NULL);
}

/* `acquired` may be 0: nothing is shown. What is shown is written by a transfer. */
static bool submit(gpu *g, in_flight *f, VkSemaphore acquired, VkSemaphore presentable) {
  static const VkPipelineStageFlags wait = VK_PIPELINE_STAGE_TRANSFER_BIT;
  const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                             .waitSemaphoreCount = acquired != VK_NULL_HANDLE,
                             .pWaitSemaphores = &acquired,
                             .pWaitDstStageMask = &wait,
                             .commandBufferCount = 1,
                             .pCommandBuffers = &f->commands,
                             .signalSemaphoreCount = acquired != VK_NULL_HANDLE,
                             .pSignalSemaphores = &presentable};
  f->pending = gpu_check(g->vkEndCommandBuffer(f->commands), "vkEndCommandBuffer") &&
               gpu_check(g->vkQueueSubmit(g->queue, 1, &info, f->fence), "vkQueueSubmit");
  return f->pending;
}

/* Stands for a controller that looks at the GPU's times: the load changes, the resolution follows. */
static uint32_t percent_of(uint32_t number) {
  static const uint32_t steps[] = {100, 100, 83, 67, 50, 67, 83, 91};
  return steps[number % 8];
}

static bool draw(renderer *r, uint32_t number) {
  static const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                                 .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  gpu *g = &r->gpu;
  const uint32_t slot = number % FRAMES_IN_FLIGHT;
  in_flight *f = &r->frames[slot];
  if (!finish(r, f)) return false;
  window *w = &r->window;
  if (r->shows && !window_acquire(g, w, slot)) return false;
  const uint32_t beat = r->shows ? number / 30 : number;
  f->number = number;
  f->width = MAX_WIDTH * percent_of(beat) / 100, f->height = MAX_HEIGHT * percent_of(beat) / 100;
  if (!gpu_check(g->vkResetCommandBuffer(f->commands, 0), "vkResetCommandBuffer") ||
      !gpu_check(g->vkBeginCommandBuffer(f->commands, &begin), "vkBeginCommandBuffer"))
    return false;
  scene_draw(g, &r->scene, f->commands, f->target, f->width, f->height, (float)number * (r->shows ? 0.02f : 0.2f));
  shown_to_general(g, f->commands, &r->shown[slot]);
  const float exposure = 1.1f;
  if (!post_record(&r->post, f->commands, slot, f->width, f->height, exposure)) return false;
  if (r->out) read_back(g, f, &r->shown[slot]);
  if (!r->shows) return submit(g, f, VK_NULL_HANDLE, VK_NULL_HANDLE);
  window_record(g, w, f->commands, r->shown[slot].image, f->width, f->height);
  return submit(g, f, w->acquired[slot], w->presentable[w->image]) && window_present(g, w);
}

static bool create_frame(renderer *r, uint32_t i) {
  gpu *g = &r->gpu;
  in_flight *f = &r->frames[i];
  const VkCommandBufferAllocateInfo commands = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = r->pool, .commandBufferCount = 1};
  const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  return gpu_check(g->vkAllocateCommandBuffers(g->device, &commands, &f->commands), "vkAllocateCommandBuffers") &&
         gpu_check(g->vkCreateFence(g->device, &fence, NULL, &f->fence), "vkCreateFence") &&
         gpu_buffer_create(g, MAX_WIDTH * MAX_HEIGHT * 4, VK_BUFFER_USAGE_TRANSFER_DST_BIT, host, &f->pixels) &&
         gpu_image_create(g, VK_FORMAT_R16G16B16A16_SFLOAT, MAX_WIDTH, MAX_HEIGHT,
                          VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_SAMPLED_BIT, &r->lit[i]) &&
         gpu_image_create(g, VK_FORMAT_R8G8B8A8_UNORM, MAX_WIDTH, MAX_HEIGHT, VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT,
                          &r->shown[i]) &&
         scene_target(g, &r->scene, &r->lit[i], &f->target);
}

/* The upload of the weights is the first thing on the queue. */
static bool create(renderer *r) {
  static const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  gpu *g = &r->gpu;
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                        .queueFamilyIndex = g->family};
  bool ok = gpu_check(g->vkCreateCommandPool(g->device, &pool, NULL, &r->pool), "vkCreateCommandPool") && scene_create(g, &r->scene);
  for (uint32_t i = 0; ok && i < FRAMES_IN_FLIGHT; i++) ok = create_frame(r, i);
  in_flight *first = &r->frames[0];
  ok = ok && gpu_check(g->vkBeginCommandBuffer(first->commands, &begin), "vkBeginCommandBuffer") &&
       post_create(g, r->lit, r->shown, first->commands, &r->post) && submit(g, first, VK_NULL_HANDLE, VK_NULL_HANDLE);
  first->pending = false;
  return ok && gpu_check(g->vkWaitForFences(g->device, 1, &first->fence, VK_TRUE, UINT64_MAX), "vkWaitForFences") &&
         gpu_check(g->vkResetFences(g->device, 1, &first->fence), "vkResetFences");
}

static void destroy(renderer *r) {
  gpu *g = &r->gpu;
  if (!g->device) return;
  g->vkDeviceWaitIdle(g->device);
  post_destroy(g, &r->post);
  for (uint32_t i = 0; i < FRAMES_IN_FLIGHT; i++) {
    const gpu_image *images[] = {&r->lit[i], &r->shown[i]};
    for (int k = 0; k < 2; k++) {
      g->vkDestroyImageView(g->device, images[k]->view, NULL);
      g->vkDestroyImage(g->device, images[k]->image, NULL);
    }
    g->vkDestroyFramebuffer(g->device, r->frames[i].target, NULL);
    g->vkDestroyBuffer(g->device, r->frames[i].pixels.buffer, NULL);
    g->vkDestroyFence(g->device, r->frames[i].fence, NULL);
  }
  scene_destroy(g, &r->scene);
  if (r->shows) window_close(g, &r->window);
  g->vkDestroyCommandPool(g->device, r->pool, NULL);
}

typedef struct arguments {
  gpu_wish wish;
  const char *out;
  uint32_t frames; /* 0: not said */
  bool window;
} arguments;

static bool take_count(const char *text, uint32_t *out) {
  char *end;
  const unsigned long value = strtoul(text, &end, 10);
  if (*end || !value || value > UINT32_MAX) return fprintf(stderr, "frame: not a number of frames: %s\n", text), false;
  return *out = (uint32_t)value, true;
}

static bool parse(arguments *a, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const bool more = i + 1 < argc;
    bool good = true;
    if (!strcmp(argv[i], "--validate")) a->wish.validate = GPU_VALIDATE;
    else if (!strcmp(argv[i], "--validate-gpu")) a->wish.validate = GPU_VALIDATE_SHADERS;
    else if (!strcmp(argv[i], "--window")) a->window = true;
    else if (more && !strcmp(argv[i], "--device")) a->wish.device = argv[++i];
    else if (more && !strcmp(argv[i], "--frames")) good = take_count(argv[++i], &a->frames);
    else if (more && !strcmp(argv[i], "--out")) a->out = argv[++i];
    else good = false;
    if (!good) return false;
  }
  return true;
}

static bool run(renderer *r, const arguments *a, uint32_t *done) {
  enum { OFFSCREEN_FRAMES = 8 };
  const uint32_t frames = a->frames ? a->frames : r->shows ? UINT32_MAX : OFFSCREEN_FRAMES;
  bool ok = gpu_open(&r->gpu, &a->wish) && (!r->shows || window_open(&r->gpu, &r->window)) && create(r);
  while (ok && *done < frames && (!r->shows || window_is_open(&r->window))) ok = draw(r, (*done)++);
  for (uint32_t i = 0; ok && i < FRAMES_IN_FLIGHT; i++) ok = finish(r, &r->frames[(*done + i) % FRAMES_IN_FLIGHT]);
  return ok;
}

int main(int argc, char **argv) {
  static renderer r;
  arguments a = {.frames = 0};
  uint32_t done = 0;
  if (!parse(&a, argc, argv)) {
    fprintf(stderr, "usage: frame [--device PART] [--frames N] [--out DIR] [--window] [--validate|--validate-gpu]\n");
    return 2;
  }
  r.out = a.out;
  host_prepare_drivers(NULL);
  snt_diag diag = {.head = SNT_HEAD(diag)};
  bool ok = !r.out || host_make_dirs(r.out, &diag) == SNT_OK;
  if (!ok) fprintf(stderr, "frame: %s\n", diag.text);
  if (!a.out || a.window) a.wish.extensions = window_extensions(&a.wish.extension_count);
  r.shows = a.wish.extensions != NULL;
  if (a.window && !r.shows) ok = false, fprintf(stderr, "frame: there is no display, or no GLFW to open a window\n");
  ok = ok && run(&r, &a, &done);
  if (ok)
    printf("%s: %u frames%s, %u kernels a frame\n", r.gpu.properties.deviceName, done, r.shows ? " in a window" : "",
           snt_exec_step_count(r.post.exec));
  destroy(&r);
  const uint32_t messages = r.gpu.messages;
  gpu_close(&r.gpu);
  window_finish();
  return ok && !messages ? 0 : 1;
}
