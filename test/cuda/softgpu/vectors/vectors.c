/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vectors [options]: runs the kernels of forms.table on a device and compares with the references.
 *
 * --driver FILE   the driver's library ("system": libcuda.so.1 as the loader finds it); else HEADRACE_VECTORS_DRIVER
 * --match TEXT    only mnemonics that start so
 * --digest        no references: a number for each form's results, to compare runs with
 * --count         no device: mnemonic and number of vectors, for the coverage table
 * --dump FOLDER   no device: the modules' text, to give to other tools
 *
 * 77, with a line why, without a driver or device. Forms that the device's capability lacks are skipped and counted.
 */
#include "config.h"

#include "test/cuda/softgpu/vectors/vectors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct form forms[] = {
#include "test/cuda/softgpu/vectors/forms.h"
};
enum { FORMS = sizeof forms / sizeof *forms, VECTORS_MAX = 1 << 16, MODULE_FORMS = 128, TEXT_MAX = 1 << 20 };
enum { ALONE_MAX = 128 }; /* vectors of a form that a lane executes by itself */

static reference *const references[] = {
	compare_reference, integer_reference, packed_reference, video_reference, memory_reference,
#ifdef HAVE_MPFR
	float_reference, convert_reference,
#endif
};

static struct {
	const char *driver, *match, *dump;
	bool digest, count;
} options;
static uint64_t inputs[VECTORS_MAX * SOURCES_MAX], outputs[VECTORS_MAX * OUTPUT_WORDS];
static char text[TEXT_MAX], error_log[4096];
static size_t vectors_run, alone_run, forms_run, wrong_forms, refused_forms, forms_beyond, forms_unchecked;

static uint64_t masked(char letter, uint64_t bits)
{
	unsigned width = letter_width(letter);
	return width == 64 ? bits : width == 0 ? bits & 1 : bits & ((1ull << width) - 1);
}

static bool has_reference(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	memset(out, 0, RESULTS_MAX * sizeof *out);
	for (size_t n = 0; n < sizeof references / sizeof *references; n++)
		if (references[n](form, words, in, out))
			return true;
	return false;
}

static void print_mismatch(const struct form *form, const uint64_t *in, size_t result, bool guarded, uint64_t got,
			   const struct outcome *want)
{
	printf("%s%s", guarded ? "guarded " : "", form->mnemonic);
	if (strncmp(form->text, "$op $0, ", 8) || strpbrk(form->text, "|.;{"))
		printf(" (%s)", form->text);
	for (size_t n = 0; form->sources[n]; n++)
		printf("%s%" PRIx64, n ? ", " : " of ", in[n]);
	printf(": result %zu is %" PRIx64 ", not", result, got);
	for (unsigned n = 0; n < want->count; n++) {
		const struct element *e = &want->element[n];
		if (e->rule == RULE_WITHIN)
			printf(" %.9g to %.9g", e->low, e->high);
		else
			printf(" %s%" PRIx64,
			       e->rule == RULE_NAN    ? "a NaN such as "
			       : e->rule == RULE_ZERO ? "zero "
						      : "",
			       e->bits);
	}
	printf("\n");
}

/* Whether all bits of a result are judged. */
static bool is_whole(const struct outcome *outcome, char letter)
{
	unsigned width = letter_width(letter);
	uint64_t judged = 0, all = width == 64 ? UINT64_MAX : width == 0 ? 1 : (1ull << width) - 1;
	for (unsigned n = 0; n < outcome->count; n++) {
		const struct element *e = &outcome->element[n];
		judged |= (e->width < 64 ? (1ull << e->width) - 1 : UINT64_MAX) << e->shift;
	}
	return (judged & all) == all;
}

/* One vector's results; false: wrong. */
static bool check_vector(const struct form *form, const struct words *words, size_t at, bool print)
{
	const uint64_t *in = inputs + at * SOURCES_MAX, *got = outputs + at * OUTPUT_WORDS;
	struct outcome want[RESULTS_MAX];
	bool good = true;
	if (!has_reference(form, words, in, want))
		return true;
	for (size_t n = 0; form->results[n]; n++) {
		char letter = form->results[n];
		uint64_t plain = got[n], guarded = got[RESULTS_MAX + n];
		bool right = outcome_holds(&want[n], plain);
		if (!is_whole(&want[n], letter)) {
			printf("%s: not all bits of result %zu are judged\n", form->mnemonic, n);
			return false;
		}
		bool kept = guarded == (at % 2 ? plain : letter == 'p' ? 0 : masked(letter, SENTINEL));
		if (print && !right)
			print_mismatch(form, in, n, false, plain, &want[n]);
		else if (print && !kept)
			print_mismatch(form, in, n, true, guarded, &want[n]);
		good = good && right && kept;
	}
	return good;
}

/* False: nothing to check it by. */
static bool check_form(const struct form *form, size_t count, bool alone)
{
	size_t wrong = 0;
	struct outcome unused[RESULTS_MAX];
	struct words words;
	words_of(form->mnemonic, &words);
	if (!has_reference(form, &words, inputs, unused))
		return false;
	for (size_t at = 0; at < count; at++)
		wrong += !check_vector(form, &words, at, wrong < 2);
	if (wrong) {
		printf("%s: %zu of %zu vectors are wrong%s\n", form->mnemonic, wrong, count,
		       alone ? " by one lane alone" : "");
		wrong_forms++;
	}
	return true;
}

/* FNV-1a of all results. */
static void print_digest(const struct form *form, size_t count)
{
	uint64_t hash = 0xcbf29ce484222325ull;
	for (size_t n = 0; n < count * OUTPUT_WORDS; n++)
		hash = (hash ^ outputs[n]) * 0x100000001b3ull;
	printf("%s %d %016" PRIx64 "\n", form->mnemonic, form->immediate, hash);
}

/* False: there is no reference to check the results by. */
static bool run_kernel(struct device *device, struct module *module, const char *name, const struct form *form,
		       size_t count, bool alone)
{
	int error = device_run(device, module, name, inputs, outputs, (uint32_t)count, alone);
	if (error) {
		printf("%s: CUDA error %d\n", form->mnemonic, error);
		exit(1);
	}
	if (!options.digest)
		return check_form(form, count, alone);
	print_digest(form, count);
	return true;
}

static void run_form(struct device *device, struct module *module, const struct form *form, unsigned number)
{
	char name[16];
	size_t count = inputs_make(form, inputs, VECTORS_MAX), some = count < ALONE_MAX ? count : ALONE_MAX;
	snprintf(name, sizeof name, "k%u", number);
	if (!run_kernel(device, module, name, form, count, false)) {
		forms_unchecked++;
#ifdef HAVE_MPFR
		printf("%s has no reference\n", form->mnemonic);
		wrong_forms++;
#endif
		return;
	}
	forms_run++;
	vectors_run += count;
	/* Some of them again, from the first to the last. */
	for (size_t n = 0; n < some; n++)
		memmove(inputs + n * SOURCES_MAX, inputs + n * count / some * SOURCES_MAX,
			SOURCES_MAX * sizeof *inputs);
	run_kernel(device, module, name, form, some, true);
	alone_run += some;
}

static bool wanted(const struct form *form)
{
	return !options.match || !strncmp(form->mnemonic, options.match, strlen(options.match));
}

static size_t write_module(size_t from, size_t end)
{
	size_t used = (size_t)snprintf(text, sizeof text, ".version 8.8\n.target sm_%s\n.address_size 64\n",
				       forms[from].target);
	for (size_t n = from; n < end; n++)
		if (wanted(&forms[n]))
			used += kernel_write(&forms[n], (unsigned)(n - from), text + used, sizeof text - used);
	return used;
}

static void run_forms(struct device *device, size_t from, size_t end)
{
	write_module(from, end);
	struct module *module = device_load(device, text, error_log, sizeof error_log);
	if (!module && end - from > 1) {
		run_forms(device, from, from + (end - from) / 2);
		run_forms(device, from + (end - from) / 2, end);
		return;
	}
	for (size_t n = from; n < end; n++) {
		if (!wanted(&forms[n]))
			continue;
		if (module) {
			run_form(device, module, &forms[n], (unsigned)(n - from));
			continue;
		}
		refused_forms++;
		printf("%s is refused: %s\n", forms[n].mnemonic, error_log);
	}
	if (module)
		device_unload(device, module);
}

/* The next forms of one target, as many as a module takes. */
static size_t end_of_module(size_t from)
{
	size_t end = from + 1;
	while (end < FORMS && end - from < MODULE_FORMS && !strcmp(forms[end].target, forms[from].target))
		end++;
	return end;
}

static bool device_has(const struct device *device, const char *target)
{
	/* An architecture's own features, sm_100a, are only its own; this software GPU has them all. */
	char *suffix;
	int least = (int)strtol(target, &suffix, 10), have = device_capability(device);
	return *suffix ? have == least : have >= least;
}

static void dump(void)
{
	for (size_t from = 0, end, number = 0; from < FORMS; from = end, number++) {
		char path[4096];
		end = end_of_module(from);
		size_t length = write_module(from, end);
		snprintf(path, sizeof path, "%s/%03zu.sm_%s.ptx", options.dump, number, forms[from].target);
		FILE *file = fopen(path, "w");
		if (!file || fwrite(text, 1, length, file) != length || fclose(file)) {
			fprintf(stderr, "%s: %s\n", path, strerror(errno));
			exit(1);
		}
	}
}

static bool take_option(int argc, char **argv, int *at)
{
	const char *name = argv[*at], *value = *at + 1 < argc ? argv[*at + 1] : NULL;
	if (!strcmp(name, "--digest"))
		options.digest = true;
	else if (!strcmp(name, "--count"))
		options.count = true;
	else if (value && !strcmp(name, "--driver"))
		options.driver = argv[++*at];
	else if (value && !strcmp(name, "--match"))
		options.match = argv[++*at];
	else if (value && !strcmp(name, "--dump"))
		options.dump = argv[++*at];
	else
		return false;
	return true;
}

static int run_all(const char *driver)
{
	struct device *device = device_open(!strcmp(driver, "system") ? "libcuda.so.1" : driver);
	bool is_system = !strcmp(driver, "system");
	if (!device) {
		printf("SKIP: no device to run the vectors on\n");
		return 77;
	}
	for (size_t from = 0, end; from < FORMS; from = end) {
		end = end_of_module(from);
		if (!is_system || device_has(device, forms[from].target))
			run_forms(device, from, end);
		else
			forms_beyond += end - from;
	}
	if (options.digest) {
		device_close(device);
		return 0;
	}
	printf("%s: %zu vectors of %zu forms, %zu of them by one lane alone too; wrong: %zu forms; refused: %zu; "
	       "beyond this device: %zu\n", device_name(device), vectors_run, forms_run, alone_run, wrong_forms,
	       refused_forms, forms_beyond);
	if (forms_unchecked)
		printf("not checked, without MPFR: %zu forms of floats\n", forms_unchecked);
	device_close(device);
	return wrong_forms || refused_forms || !forms_run;
}

int main(int argc, char **argv)
{
	for (int at = 1; at < argc; at++) {
		if (!take_option(argc, argv, &at)) {
			fprintf(stderr, "usage: vectors [--driver FILE|system] [--match TEXT] [--digest] [--count] "
					"[--dump FOLDER]\n");
			return 2;
		}
	}
	if (options.dump) {
		dump();
		return 0;
	}
	for (size_t n = 0; options.count && n < FORMS; n++)
		printf("%s %zu\n", forms[n].mnemonic, inputs_make(&forms[n], inputs, VECTORS_MAX));
	if (options.count)
		return 0;
	const char *driver = options.driver ? options.driver : getenv("HEADRACE_VECTORS_DRIVER");
	return run_all(driver ? driver : "system");
}
