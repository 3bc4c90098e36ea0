/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads any bytes as a program that is linked with a static CUDA runtime, and as the runtime that it is compared with.
 * The result is a refusal, or all functions of that runtime.
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
	if (runtime_entries_static(file, &reference, &entries, &which) != RUNTIME_SAME)
		return;
	if (entries.count > RUNTIME_ENTRIES_MAX)
		abort();
	for (unsigned i = 0; i < reference.count; i++)
		if (!runtime_entries_find(&entries, reference.entry[i].name))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	elf_file_t file;
	if (elf_file_set(data, size, &file))
		read_all(&file);
	return 0;
}
