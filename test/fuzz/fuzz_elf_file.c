/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads any bytes as a program that is linked with a static CUDA runtime, and as the runtime that it is compared with.
 * The result is a refusal, or functions that a runtime of the same major version has: of CUDA 13 all of them, of CUDA 12 no
 * others.
 */
#include "cuda_remote/relink/runtime_entries.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const elf_file_t *file)
{
	static runtime_entries_t reference, entries;
	const char *which = "", *text;
	size_t length = 0;
	for (unsigned i = 0; (text = elf_file_dynamic(file, DT_NEEDED, i)); i++)
		length += strlen(text);
	if (length && runtime_entries_presence(file) == RUNTIME_STRIPPED)
		length++;
	if (!runtime_entries_exported(file, &reference) || runtime_entries_presence(file) != RUNTIME_PRESENT)
		return;
	if (!runtime_entries_static(file, &entries))
		return;
	enum runtime_major major = runtime_entries_major(&entries);
	if (major == RUNTIME_OLDER || runtime_entries_match(&entries, &reference, major, &which) != RUNTIME_SAME)
		return;
	if (entries.count > RUNTIME_ENTRIES_MAX)
		abort();
	const runtime_entries_t *all = major == RUNTIME_CUDA_13 ? &reference : &entries;
	const runtime_entries_t *in = major == RUNTIME_CUDA_13 ? &entries : &reference;
	for (unsigned i = 0; i < all->count; i++)
		if (!runtime_entries_find(in, all->entry[i].name))
			abort();
	if (major == RUNTIME_CUDA_12)
		(void)runtime_entries_release_12(&entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	elf_file_t file;
	if (elf_file_set(data, size, &file))
		read_all(&file);
	return 0;
}
