/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes jumps over the functions of a loaded object. */
#include "cuda_remote/relink/code_patch.h"

#if defined(__x86_64__)

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LONG_JUMP = 14, SHORT_JUMP = 5, PAD = 4 };
static const uint8_t landing_pad[PAD] = { 0xf3, 0x0f, 0x1e, 0xfa };    /* endbr64 */
static const uint8_t returns_zero[] = { 0x31, 0xc0, 0xc3 };            /* xor %eax, %eax; ret */
static const uint8_t jump_indirect[] = { 0xff, 0x25, 0x00, 0x00, 0x00, 0x00 }; /* jmp *0(%rip) */

static unsigned pad_of(const code_patch_t *patch)
{
	return patch->size >= PAD && !memcmp(patch->file, landing_pad, PAD) ? PAD : 0;
}

static uint64_t room_of(const code_patch_t *patch)
{
	return patch->size - pad_of(patch);
}

static bool stays(const code_patch_t *patch)
{
	return patch->size == sizeof returns_zero && !memcmp(patch->file, returns_zero, sizeof returns_zero);
}

static void encode_long(uint8_t bytes[LONG_JUMP], uintptr_t target)
{
	memcpy(bytes, jump_indirect, sizeof jump_indirect);
	memcpy(bytes + sizeof jump_indirect, &target, sizeof target);
}

static bool is_long_jump(const code_patch_t *patch)
{
	uint8_t bytes[LONG_JUMP];
	encode_long(bytes, patch->target);
	return room_of(patch) >= LONG_JUMP && !memcmp(patch->code + pad_of(patch), bytes, sizeof bytes);
}

/* The patch with the most bytes, which offers those after its own jump for the jumps of short functions. */
static const code_patch_t *largest_of(const code_patch_t *patches, unsigned count)
{
	const code_patch_t *largest = patches;
	for (unsigned i = 1; i < count; i++)
		if (room_of(&patches[i]) > room_of(largest))
			largest = &patches[i];
	return largest;
}

/* Checks everything that can be checked before the first byte is written. */
static enum code_patch_result check(const code_patch_t *patches, unsigned count, const code_patch_t *largest,
				    const char **which)
{
	uint64_t spare = room_of(largest) / LONG_JUMP, shorts = 0;
	for (unsigned i = 0; i < count; i++) {
		const code_patch_t *patch = &patches[i];
		*which = patch->name;
		if (memcmp(patch->code, patch->file, patch->size))
			return is_long_jump(largest) ? CODE_PATCH_BEFORE : CODE_PATCH_DIFFERENT;
		if (stays(patch) || room_of(patch) >= LONG_JUMP)
			continue;
		ptrdiff_t distance = patch->code - largest->code;
		if (room_of(patch) < SHORT_JUMP || ++shorts >= spare || distance > INT32_MAX / 2 ||
		    distance < INT32_MIN / 2)
			return CODE_PATCH_SHORT;
	}
	return CODE_PATCH_DONE;
}

static void write_jumps(const code_patch_t *patches, unsigned count, const code_patch_t *largest)
{
	uint8_t *spare = largest->code + pad_of(largest) + LONG_JUMP;
	for (unsigned i = 0; i < count; i++) {
		uint8_t *code = patches[i].code + pad_of(&patches[i]);
		if (stays(&patches[i]))
			continue;
		if (room_of(&patches[i]) >= LONG_JUMP) {
			encode_long(code, patches[i].target);
			continue;
		}
		encode_long(spare, patches[i].target);
		int32_t distance = (int32_t)(spare - (code + SHORT_JUMP));
		code[0] = 0xe9;
		memcpy(code + 1, &distance, sizeof distance);
		spare += LONG_JUMP;
	}
}

/*
 * Whether a changed page of the object's file may become executable: SELinux's execmod, prctl(PR_SET_MDWE) and filters
 * of system calls forbid it. Tried on another mapping of the file: the object's own text would stay unusable.
 */
static bool may_change_text(const char *path)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	uint8_t *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	if (memory == MAP_FAILED)
		return false;
	memory[0] ^= 1;
	bool allowed = !mprotect(memory, page, PROT_READ | PROT_EXEC);
	munmap(memory, page);
	return allowed;
}

/* The pages of all functions. */
static uint8_t *pages_of(const code_patch_t *patches, unsigned count, size_t *bytes)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1, low = UINTPTR_MAX, high = 0;
	for (unsigned i = 0; i < count; i++) {
		uintptr_t start = (uintptr_t)patches[i].code, end = start + patches[i].size;
		low = start < low ? start : low;
		high = end > high ? end : high;
	}
	*bytes = ((high + mask) & ~mask) - (low & ~mask);
	return patches->code - ((uintptr_t)patches->code - (low & ~mask));
}

enum code_patch_result code_patch_all(const char *path, const code_patch_t *patches, unsigned count,
				      const char **which)
{
	const code_patch_t *largest = largest_of(patches, count);
	enum code_patch_result result = check(patches, count, largest, which);
	if (result != CODE_PATCH_DONE)
		return result;
	size_t bytes;
	uint8_t *pages = pages_of(patches, count, &bytes);
	if (!may_change_text(path))
		return CODE_PATCH_FORBIDDEN;
	if (mprotect(pages, bytes, PROT_READ | PROT_WRITE)) {
		if (mprotect(pages, bytes, PROT_READ | PROT_EXEC)) /* some pages may have changed */
			_exit(126);
		return CODE_PATCH_FORBIDDEN;
	}
	write_jumps(patches, count, largest);
	if (!mprotect(pages, bytes, PROT_READ | PROT_EXEC))
		return CODE_PATCH_DONE;
	/* The program's own functions in these pages cannot run any more. */
	hr_log(HR_LOG_ERROR, "%s: its text cannot be made executable again: %s; the program ends", path,
	       strerror(errno));
	_exit(126);
}

#else
enum code_patch_result code_patch_all(const char *path, const code_patch_t *patches, unsigned count,
				      const char **which)
{
	(void)path;
	*which = count ? patches->name : NULL;
	return CODE_PATCH_MACHINE;
}
#endif
