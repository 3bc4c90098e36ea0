/* SPDX-License-Identifier: BSD-3-Clause */
/* Images from the wire: what of a client's bytes may reach a driver as a module's image. */
#ifndef RC_CUDA_SERVER_IMAGE_H
#define RC_CUDA_SERVER_IMAGE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * True if size bytes are one image that lies inside them altogether: PTX text (one NUL, at its end), a fat-binary container
 * (server_image_container), a 64-bit ELF file whose headers, sections and segments are inside, or a linked image
 * (linked_image.h).
 */
bool server_image_is_sound(const uint8_t *image, uint64_t size);

/* Bytes of the fat-binary container at the front of image; 0 if there is none, or if it or an entry of it ends beyond size. */
uint64_t server_image_container(const uint8_t *image, uint64_t size);

/* Bytes of device memory that the variables of a sound image, or of the container at its front, take. */
uint64_t server_image_variables(const uint8_t *image, uint64_t size);

/* A private, read-only copy. A page or more of zeros follows it, and then a page without access. */
struct server_image {
	uint8_t *bytes;
	uint64_t mapped;
};
/* CUDA_ERROR_OUT_OF_MEMORY. */
CUresult server_image_copy(const void *image, uint64_t size, struct server_image *copy);
/* NULL bytes are allowed. */
void server_image_free(struct server_image *copy);

#endif
